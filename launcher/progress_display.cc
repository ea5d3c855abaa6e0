#include "launcher/progress_display.h"

#include <fmt/core.h>

namespace dtf::launcher {

namespace {
constexpr Duration kPlainEvery = std::chrono::seconds(5);
constexpr Duration kAwaitedEvery = std::chrono::seconds(5);
}  // namespace

void ProgressDisplay::onProgress(const ProgressNotice& notice) {
  meter_.add(notice, clock_.now());
  if (console_.isTerminal()) return;
  unshown_ = true;
  if (plain_shown_ && clock_.now() < *plain_shown_ + kPlainEvery) return;
  plain_shown_ = clock_.now();
  unshown_ = false;
  console_.line(text());
}

void ProgressDisplay::refresh() {
  nameAwaited();
  if (!console_.isTerminal()) return;
  // One column stays free: some terminals wrap when the last one is written.
  console_.status(text().substr(0, console_.columns() - 1));
}

void ProgressDisplay::finish() {
  if (unshown_) console_.line(text());
  unshown_ = false;
}

std::string ProgressDisplay::text() const {
  const TasksUp ps = monitor_.up(JobKind::kPs), worker = monitor_.up(JobKind::kWorker);
  if (meter_.last()) return progressLine({*meter_.last(), ps, worker, meter_.secondsLeft()});
  return startingLine(ps, worker, toSeconds(clock_.now() - start_time_));
}

void ProgressDisplay::nameAwaited() {
  if (monitor_.stopping() || clock_.now() < waiting_shown_ + kAwaitedEvery) return;
  waiting_shown_ = clock_.now();
  const std::string names = monitor_.namesNotReady();
  if (names.empty()) return;
  console_.line(fmt::format("dtf-launch: waiting for {} to become ready ({:.0f} s of {:g} s)",
                            names, toSeconds(clock_.now() - start_time_), toSeconds(start_limit_)));
}

}  // namespace dtf::launcher
