// TaskMonitor: deadlines, and tasks that stand still.

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/base/check.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

// The first worker that finishes sets a deadline for all tasks, the last one a closer deadline.
void TaskMonitor::noteGone(size_t task) {
  if (limits_.serves || tasks_[task].id.job != JobKind::kWorker) return;
  const std::vector<TaskFacts> all = facts();
  if (!finish_time_ && hasAWorkerFinished(all)) finish_time_ = clock_.now() + limits_.finish;
  if (finish_time_ && haveAllWorkersGone(all))
    finish_time_ = std::min(*finish_time_, clock_.now() + limits_.last);
}

void TaskMonitor::checkDeadlines() {
  DTF_CHECK(!stopping());
  const TimePoint now = clock_.now();
  const auto fail = [this](const std::string& what, TaskState state) {
    RootCause root{std::nullopt, what, "", exitCode(ErrorCode::kDeadline)};
    for (size_t task = tasks_.size(); task-- > 0;)
      if (tasks_[task].state == state) root.task = task;
    stop(std::move(root));
  };
  const std::string missing = names(Named::kNotReady);
  const bool late = std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& task) {
    const bool planned = task.state == TaskState::kPlanned;
    const bool starting = task.state == TaskState::kStarting;
    return (planned && now >= start_time_ + limits_.start) ||
           (starting && now >= task.started + limits_.start);
  });
  const bool is_over = isOver();
  if (late && !is_over)
    return fail(fmt::format("not ready within {:g} s of its start (timeouts.start_seconds): {}",
                            toSeconds(limits_.start), missing),
                TaskState::kStarting);
  const bool never_ends = finish_time_ && now >= *finish_time_ && anyAlive();
  if (!late && !never_ends) return;
  if (is_over)
    stop(std::nullopt);
  else
    fail("the workers have finished, but these tasks did not end in time: " + names(Named::kAlive),
         TaskState::kReady);
}

// A ps while workers run, and anybody behind the result. Nobody but the kernel knows: it answers no
// question, and its socket takes connections still. Clients of a task that serves have deadlines of
// their own.
void TaskMonitor::killFrozen() {
  if (limits_.serves || (limits_.restarts.max == 0 && !isOver())) return;
  const TimePoint now = clock_.now();
  const bool workers_run = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    const bool is_up =
        task.state == TaskState::kReady || (task.state == TaskState::kStarting && task.was_ready);
    return task.id.job == JobKind::kWorker && is_up && !task.suspended_since;
  });
  for (size_t task = 0; task < tasks_.size(); ++task) {
    Task& of = tasks_[task];
    const bool is_missed = isOver() || (limits_.hostsShard(of.id) && workers_run);
    if (!of.suspended_since || !is_missed)
      of.missed_since.reset();
    else if (!of.missed_since)
      of.missed_since = now;
    else if (now - *of.missed_since > limits_.lease && alive(task))
      orders_.push_back(SignalOrder{task, SIGKILL});
  }
}

void TaskMonitor::onSuspended(size_t task, bool suspended) {
  Task& of = tasks_.at(task);
  if (!suspended || !alive(task))
    of.suspended_since.reset();
  else if (!of.suspended_since)
    of.suspended_since = clock_.now();
}

std::optional<size_t> TaskMonitor::suspendedFirst() const {
  std::optional<size_t> first;
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (tasks_[task].suspended_since &&
        (!first || *tasks_[task].suspended_since < *tasks_[*first].suspended_since))
      first = task;
  return first;
}

}  // namespace dtf::launcher
