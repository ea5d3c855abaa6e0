#include "launcher/progress_display.h"

#include <fmt/core.h>

#include "common/base/text.h"

namespace dtf::launcher {

namespace {
constexpr Duration kPlainEvery = std::chrono::seconds(5);
constexpr Duration kAwaitedEvery = std::chrono::seconds(5);
constexpr Duration kStandstillEvery = std::chrono::seconds(30);
constexpr double kStandstillSeconds = 3;  // without a step, and without that many of them
constexpr double kReportsMissed = 2;      // of a job that reports after a number of steps
}  // namespace

void ProgressDisplay::onProgress(const ProgressNotice& notice) {
  if (!meter_.last() || meter_.last()->step != notice.step) {
    moved_ = clock_.now();
    awaited_.clear();
  }
  meter_.add(notice, clock_.now());
  if (!shown_ || console_.isTerminal()) return;
  unshown_ = true;
  if (plain_shown_ && clock_.now() < *plain_shown_ + kPlainEvery) return;
  plain_shown_ = clock_.now();
  unshown_ = false;
  console_.line(text());
}

void ProgressDisplay::onWaiting(const std::string& whom) {
  awaited_ = printable(whom);
}

void ProgressDisplay::refresh() {
  if (!shown_) return;
  nameAwaited();
  if (!console_.isTerminal()) return nameStandstill();
  // One column stays free: some terminals wrap when the last one is written.
  console_.status(text(console_.columns() - 1));
}

void ProgressDisplay::finish() {
  if (unshown_) console_.line(progressLine({*meter_.last(), {}, {}, std::nullopt, ""}));
  unshown_ = false;
}

std::string ProgressDisplay::text(size_t columns) const {
  const TasksUp ps = tasksUp(monitor_.facts(), JobKind::kPs),
                worker = tasksUp(monitor_.facts(), JobKind::kWorker);
  if (meter_.last())
    return progressLine({*meter_.last(), ps, worker, meter_.secondsLeft(), standstill()}, columns);
  const bool serving = monitor_.serves() && monitor_.allReady();
  return waitingLine(serving ? "serving" : "starting", ps, worker,
                     toSeconds(clock_.now() - start_time_))
      .substr(0, columns);
}

std::string ProgressDisplay::standstill() const {
  if (!meter_.last() || monitor_.stopping() || monitor_.saving()) return "";
  const ProgressNotice& last = *meter_.last();
  if (last.steps > 0 && last.step >= last.steps) return "";
  const double seconds = toSeconds(clock_.now() - moved_);
  const std::optional<double> rate = meter_.stepsPerSecond();
  if (seconds < kStandstillSeconds || (rate && seconds * *rate < kStandstillSeconds)) return "";
  const std::string names = monitor_.names(TaskMonitor::Named::kSuspended);
  // Between two reports there are steps that nobody tells of.
  const bool silent = names.empty() && awaited_.empty() && report_every_steps_ > 0;
  const double reports = rate ? seconds * *rate / static_cast<double>(report_every_steps_) : 0;
  if (silent && reports < kReportsMissed) return "";
  const std::string whom = !names.empty()      ? ": suspended: " + names
                           : !awaited_.empty() ? ", waiting for " + awaited_
                                               : "";
  return fmt::format("no step for {:.0f} s{}", seconds, whom);
}

void ProgressDisplay::nameStandstill() {
  const std::string text = standstill();
  if (text.empty()) return standstill_shown_.reset();
  if (standstill_shown_ && clock_.now() < *standstill_shown_ + kStandstillEvery) return;
  standstill_shown_ = clock_.now();
  console_.line("dtf-launch: " + text);
}

void ProgressDisplay::nameAwaited() {
  const TimePoint now = clock_.now();
  const std::string names =
      monitor_.stopping() ? "" : monitor_.names(TaskMonitor::Named::kNotReady);
  if (names.empty()) return awaited_since_.reset();
  if (!awaited_since_) awaited_since_ = waiting_shown_ = now;
  if (now < waiting_shown_ + kAwaitedEvery) return;
  waiting_shown_ = now;
  console_.line(fmt::format("dtf-launch: waiting for {} to become ready ({:.0f} s of {:g} s)",
                            names, toSeconds(now - *awaited_since_), toSeconds(start_limit_)));
}

}  // namespace dtf::launcher
