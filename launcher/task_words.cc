// What TaskMonitor says: of causes, of restarts, and of tasks by name.

#include <fmt/core.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

namespace {

constexpr size_t kNamesMax = 8;                        // in one message
constexpr std::string_view kReadsData = "its data: ";  // begins a worker's notice that it reads

}  // namespace

template <class Predicate>
std::string TaskMonitor::namesOf(Predicate predicate) const {
  std::string names;
  size_t count = 0;
  for (const Task& task : tasks_) {
    if (!predicate(task) || ++count > kNamesMax) continue;
    names += (names.empty() ? "" : ", ") + task.id.name();
    if (task.state == TaskState::kStarting && !task.awaited.empty())
      names += " (awaits " + task.awaited + ")";
  }
  if (count > kNamesMax) names += fmt::format(" and {} more", count - kNamesMax);
  return names;
}

std::string TaskMonitor::cause(size_t task) const {
  const Task& of = tasks_.at(task);
  if (of.state == TaskState::kDone) return "";
  if (root_ && root_->task == task)
    return root_->what + (root_->message.empty() ? "" : ": " + root_->message);
  if (of.state == TaskState::kFailed || of.state == TaskState::kMissed) {
    const RootCause own = causeOf(task);
    return own.what + (own.message.empty() ? "" : ": " + own.message);
  }
  if (of.state == TaskState::kPlanned) return "was not started";
  const std::string why = stop_signal_ != 0 ? "stopped by " + signalName(stop_signal_)
                          : !root_          ? ""
                          : root_->task     ? "stopped because of " + tasks_[*root_->task].id.name()
                                            : "stopped because dtf-launch failed";
  return alive(task) ? "outlived SIGKILL; " + why : why;
}

// A worker says that it reads its data as long as bytes come, and that it has read them: large
// files, and all that is learned from them, take longer than everything else at the start.
void TaskMonitor::onWaiting(size_t task, std::string_view whom) {
  DTF_CHECK(task < tasks_.size());
  Task& of = tasks_[task];
  if (of.state != TaskState::kStarting) return;
  const bool has_read = whom.empty() && of.awaited.starts_with(kReadsData);
  if (has_read || whom.starts_with(kReadsData)) of.started = clock_.now();
  of.awaited = printable(whom);
}

std::string TaskMonitor::names(Named which) const {
  return namesOf([which](const Task& task) {
    const bool starts = task.state == TaskState::kStarting;
    if (which == Named::kSuspended) return task.suspended_since.has_value();
    if (which == Named::kAlive) return starts || task.state == TaskState::kReady;
    return starts || task.state == TaskState::kPlanned;
  });
}

std::string TaskMonitor::restartText(size_t task) const {
  DTF_CHECK(tasks_.at(task).state == TaskState::kWaiting);
  const RootCause cause = causeOf(task);
  return fmt::format("{}{}: starting it again in {:.1f} s ({} of {})", cause.what,
                     cause.message.empty() ? "" : ": " + cause.message,
                     toSeconds(tasks_[task].restart_time - clock_.now()),
                     tasks_[task].policy.spent(), limits_.restarts.max);
}

std::vector<std::string> TaskMonitor::restartHistory() const {
  std::vector<std::string> history;
  for (const Task& task : tasks_)
    if (task.restarts > 0)
      history.push_back(fmt::format(
          "{} {} after it {}", task.id.name(),
          task.restarts == 1 ? "once," : fmt::format("{} times, the last", task.restarts),
          task.restarted_after));
  return history;
}

RootCause TaskMonitor::causeOf(size_t task) const {
  const Task& of = tasks_.at(task);
  DTF_CHECK_MSG(of.exit || of.notice, of.id.name());
  const std::string message = of.notice ? of.notice->message : "";
  // A process that said why and was then ended by our own signal has failed with the code it named.
  const bool ended_by_us = stopping() && of.exit && of.exit->signal != 0;
  const std::string history =
      (of.state == TaskState::kFailed || of.state == TaskState::kMissed) && restarts(task) > 0
          ? restarts(task) == 1
                ? ", after it was started again once"
                : fmt::format(", after it was started again {} times", restarts(task))
          : "";
  if (of.exit && !(of.notice && ended_by_us))
    return RootCause{task, of.id.name() + " " + of.exit->text() + history, message,
                     of.exit->shellCode()};
  const std::string word = of.notice ? of.notice->code : "";
  return RootCause{task, of.id.name() + " failed" + (word.empty() ? "" : " (" + word + ")"),
                   message, exitCodeOfWord(word)};
}

// `witness`: whose failure told of it.
RootCause TaskMonitor::causeOfSuspended(size_t task, size_t witness) const {
  DTF_CHECK_MSG(tasks_.at(task).suspended_since, tasks_[task].id.name());
  const RootCause told = causeOf(witness);
  const double seconds = toSeconds(clock_.now() - *tasks_[task].suspended_since);
  return RootCause{task,
                   fmt::format("{} has not run for {:.0f} s: it is suspended (SIGSTOP, Ctrl-Z)",
                               tasks_[task].id.name(), seconds),
                   told.what + (told.message.empty() ? "" : ": " + told.message), told.exit_code};
}

}  // namespace dtf::launcher
