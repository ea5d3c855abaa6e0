#include "launcher/systemd/unit_follower.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/job_summary.h"
#include "common/base/text.h"
#include "launcher/announce.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/live_tasks.h"
#include "launcher/log_fanin.h"
#include "launcher/output.h"
#include "launcher/report.h"
#include "launcher/task_line.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr auto kTurn = std::chrono::milliseconds(100);
constexpr Duration kLookUnitsEvery = std::chrono::milliseconds(500);
constexpr Duration kAskEvery = std::chrono::seconds(1);
constexpr Duration kPlainLineEvery = std::chrono::seconds(5);
// One that failed for the sake of another may be seen before that other.
constexpr Duration kSettle = std::chrono::seconds(2);
// One Ctrl-C may arrive twice.
constexpr Duration kOneRequest = std::chrono::milliseconds(250);

// In the normal case, beside warnings: what a job has come to.
bool isMilestone(const std::string& text) {
  return text.find(" event=evaluated ") != std::string::npos ||
         text.find(" event=restored ") != std::string::npos;
}

}  // namespace

UnitFollower::UnitFollower(const cluster::JobSpec& job, const Options& options, UnitJob& units,
                           int attempt, bool owns, const net::Credentials& credentials)
    : job_(job),
      options_(options),
      units_(units),
      attempt_(attempt),
      credentials_(credentials),
      tasks_(allTasks(job.cluster)),
      console_(STDERR_FILENO, canRedraw(STDERR_FILENO), useColor(ColorMode::kAuto, STDERR_FILENO)),
      watch_(
          job.job, [&units] { return units.look(); }, clock_),
      seen_(tasks_.size()),
      restarts_(tasks_.size()) {
  DTF_CHECK(units.units().size() == tasks_.size());
  if (owns) signals_.emplace(io_, [this](int signal) { onSignal(signal); });
}

void UnitFollower::openLogs() {
  size_t width = 0;
  for (const TaskId id : tasks_) width = std::max(width, id.name().size());
  for (const TaskId id : tasks_) {
    const fs::path file = job_.run_dir / "logs" / logFileName(id, attempt_);
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    logs_.add(file);
    prefixes_.push_back(fmt::format("{:<{}} | ", id.name(), width));
    tails_.emplace_back();
  }
}

void UnitFollower::say(const std::string& text) {
  if (options_.verbosity != Verbosity::kQuiet) console_.line("dtf-launch: " + text);
}

bool UnitFollower::run(bool until_ready) {
  if (prefixes_.empty()) openLogs();
  for (;;) {
    io_.poll();
    if (hung_up_) return true;
    if (clock_.now() >= looked_ + kLookUnitsEvery) look();
    const bool ended = !states_.empty() && allEnded(states_);
    showLogs(ended);
    if (ended) return false;
    if (!stopping_ && !ready_ && !failed_since_ && !states_.empty() && allUp(states_)) {
      ready_ = true;
      say(fmt::format("all {} units are ready ({:.1f} s)", tasks_.size(),
                      toSeconds(clock_.now() - started_)));
    }
    if (ready_ && until_ready) {
      console_.finish();
      return true;
    }
    showProgress();
    console_.pump();
    std::this_thread::sleep_for(kTurn);
  }
}

void UnitFollower::look() {
  looked_ = clock_.now();
  const bool was_silent = !watch_.silence().empty();
  std::optional<std::vector<UnitState>> states = watch_.look();
  if (was_silent != !states)
    console_.line("dtf-launch: " +
                  (states
                       ? "systemd answers again"
                       : "warning: systemd does not report the state of the units, asking again: " +
                             watch_.silence()));
  if (states) units_.sendRenewedKeys();
  for (const std::string& text : units_.news()) console_.line("dtf-launch: " + text);
  if (!states) return;
  markGone(*states, seen_);
  for (size_t i = 0; i < states->size(); ++i) {
    const uint32_t restarts = (*states)[i].restarts;
    if (restarts > restarts_[i] && !states_.empty())
      console_.line(
          fmt::format("dtf-launch: systemd has started {} again ({})", tasks_[i].name(), restarts));
    restarts_[i] = std::max(restarts_[i], restarts);
  }
  states_ = std::move(*states);
  if (owns()) judge();
}

// A unit that systemd gives up is the end of the job: nobody else would tell the others.
void UnitFollower::judge() {
  const TimePoint now = clock_.now();
  if (!root_ && !stopping_ && hasChiefEnded(states_, tasks_)) {
    chief_ended_ = stopping_ = true;
    say(kChief.name() + ": killed after the end of the job, which is done");
    return stopUnits();
  }
  if (chief_ended_) return;
  if (!root_ && !stopping_ && !failed_since_ && firstFailed(states_, true)) failed_since_ = now;
  if (root_ || !failed_since_ || (stopping_ && request_.signal != 0)) return;
  const bool settled = now >= *failed_since_ + kSettle || allEnded(states_);
  const std::optional<size_t> first = firstFailed(states_, settled);
  if (!first) return;
  root_ = unitRootCause(states_[*first], *first, tasks_[*first].name());
  if (std::exchange(stopping_, true) || allEnded(states_)) return;
  say(root_->what + ": stopping the others");
  stopUnits();
}

void UnitFollower::onSignal(int signal) {
  if (signal == SIGHUP) {
    hung_up_ = true;
    return;
  }
  const TimePoint now = clock_.now();
  if (request_.signal != 0 && now < request_.time + kOneRequest) return;
  request_.time = now;
  if (std::exchange(request_.signal, signal) != 0) {
    say(signalName(signal) + ": killing the tasks");
    return sayFailed("killed", units_.killReachable());
  }
  stopping_ = true;
  say(signalName(signal) + stoppingText(job_, job_.train && job_.train->checkpoint));
  stopUnits();
}

void UnitFollower::stopUnits() {
  sayFailed("stopped", units_.stopReachable());
}

// The units of a host that can't be asked go on, while the others end.
void UnitFollower::sayFailed(const std::string& what, const std::vector<Error>& errors) {
  for (const Error& error : errors)
    console_.line("dtf-launch: warning: not " + what + ": " + error.message());
}

void UnitFollower::showLogs(bool to_the_end) {
  logs_.read(to_the_end, kAnyTime, [this](const LogLine& line) {
    std::deque<std::string>& tail = tails_.at(line.source);
    tail.push_back(printable(line.text));
    if (tail.size() > LogFanin::kTailLines) tail.pop_front();
    const TaskLine read = readTaskLine(tail.back());
    if (read.kind == LineKind::kDetail)
      last_shown_ = options_.verbosity == Verbosity::kVerbose ||
                    (options_.verbosity == Verbosity::kNormal && isMilestone(read.text));
    else if (read.kind != LineKind::kMore)
      last_shown_ = read.kind == LineKind::kAlarm || read.kind == LineKind::kFailed;
    if (last_shown_) console_.line(read.text, prefixes_.at(line.source));
  });
}

// The tasks are asked: of what goes on in a unit nobody is told.
void UnitFollower::showProgress() {
  const TimePoint now = clock_.now();
  if (!ready_ || stopping_ || options_.verbosity == Verbosity::kQuiet || now < asked_ + kAskEvery)
    return;
  asked_ = now;
  const Json progress = progressOf(askTasks(job_.cluster, {}, credentials_));
  const std::string line = progress.isNull() ? "" : printable(textOf(progress, "line"));
  console_.status(line.substr(0, console_.columns() - 1));
  if (console_.isTerminal() || line.empty() || line == line_ ||
      now < plain_shown_ + kPlainLineEvery)
    return;
  line_ = line;
  plain_shown_ = now;
  console_.line(line);
}

Json UnitFollower::finish() {
  DTF_CHECK(allEnded(states_) && owns());
  console_.finish();
  const Json reached = readSummary(job_.run_dir);
  const UnitsEnd verdict =
      endOfUnits(textOf(reached, "outcome"), root_, request_.signal, chief_ended_);
  JobEnd end{job_.job,
             std::string(outcomeName(verdict.outcome)),
             verdict.exit_code,
             toSeconds(clock_.now() - started_),
             {}};
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const UnitState& unit = states_[i];
    end.tasks.push_back({tasks_[i].name(), unit.hasFailed() ? unit.exit.shellCode() : 0,
                         unitCause(unit), restarts_[i]});
  }
  Json summary = summaryJson(end, reached.isObject() ? reached : Json::object());
  summary["attempt"] = attempt_;
  writeSummary(job_.run_dir, summary);
  if (verdict.outcome != Outcome::kFailed) return summary;
  if (!root_)
    root_ = RootCause{std::nullopt, "its units have ended without a result", "", verdict.exit_code};
  FailureDetails details;
  if (root_->task) {
    details.log = job_.run_dir / "logs" / logFileName(tasks_[*root_->task], attempt_);
    const std::deque<std::string>& tail = tails_.at(*root_->task);
    details.last_lines.assign(tail.begin(), tail.end());
  }
  printBounded(STDERR_FILENO, failureReport(job_.job, *root_, details));
  return summary;
}

}  // namespace dtf::launcher
