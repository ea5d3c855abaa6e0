#include "launcher/task_monitor.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "common/base/check.h"

namespace dtf::launcher {

namespace {

// One Ctrl-C may arrive twice, from the terminal and from a wrapper that passes it on.
constexpr Duration kSameRequest = std::chrono::milliseconds(250);

// "unavailable" and "deadline" are what a task says whose peer went away: perhaps not the first
// failure.
bool mayBeDerived(const std::string& code_word) {
  return code_word == errorCodeName(ErrorCode::kUnavailable) ||
         code_word == errorCodeName(ErrorCode::kDeadline);
}

bool mayBeDerived(const ExitStatus& status) {
  return status.signal == 0 && mayBeDerived(exitCodeWord(status.code));
}

}  // namespace

std::string_view outcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kStopped:
      return "stopped";
    case Outcome::kInterrupted:
      return "interrupted";
    case Outcome::kFailed:
      return "failed";
  }
  return "unknown";
}

TaskMonitor::TaskMonitor(std::vector<TaskId> tasks, const Clock& clock, MonitorLimits limits)
    : clock_(clock), limits_(limits), start_time_(clock.now()) {
  DTF_CHECK(!tasks.empty());
  DTF_CHECK(limits.start > Duration{0} && limits.grace > Duration{0} && limits.save >= Duration{0});
  for (const TaskId id : tasks) {
    // Tasks that failed together are not to come back together.
    const uint64_t seed = (uint64_t{id.index} << 1) | (id.job == JobKind::kPs ? 0 : 1);
    tasks_.push_back(Task{.id = id, .policy = RestartPolicy(limits.restarts, seed)});
  }
}

void TaskMonitor::onSpawned(size_t task) {
  Task& of = tasks_.at(task);
  DTF_CHECK_MSG(awaitsProcess(task), of.id.name());
  if (of.state == TaskState::kWaiting) ++of.restarts;
  DTF_CHECK_MSG(of.restarts == processIndex(task), of.id.name());
  of.state = TaskState::kStarting;
  of.started = clock_.now();
  of.ready_since.reset();
  of.exit.reset();
  of.awaited.clear();
  of.notice.reset();
  of.first_sign.reset();
}

void TaskMonitor::onReady(size_t task) {
  // A process that does not exist says nothing.
  DTF_CHECK_MSG(tasks_.at(task).state != TaskState::kPlanned, tasks_[task].id.name());
  if (tasks_[task].state != TaskState::kStarting) return;
  tasks_[task].state = TaskState::kReady;
  tasks_[task].was_ready = true;
  tasks_[task].ready_since = clock_.now();
}

void TaskMonitor::onFailedNotice(size_t task, FailedNotice notice) {
  Task& failed = tasks_.at(task);
  if (failed.notice || !alive(task)) return;
  failed.notice = std::move(notice);
  if (stopping()) return;
  failed.first_sign = clock_.now();
  judgeBy(clock_.now() + limits_.grace);  // it is about to exit; should it not, it has still failed
}

void TaskMonitor::onExit(size_t task, ExitStatus status) {
  Task& ended = tasks_.at(task);
  DTF_CHECK_MSG(alive(task), ended.id.name());
  ended.exit = status;
  ended.suspended_since.reset();
  ended.missed_since.reset();
  ended.given_up = false;
  const bool is_root = root_ && root_->task == task;
  if (status.success() || (saving() && status.paused())) {
    ended.state = TaskState::kDone;
    if (ended.id.job == JobKind::kWorker) noteWorkerGone();
    if (chiefDone()) dropLate();
  } else if (stopping() && !is_root) {
    ended.state = TaskState::kStopped;
  } else if (isLate(status)) {
    ended.state = TaskState::kStopped;
    forgetFailure(task);
    if (ended.id.job == JobKind::kWorker) noteWorkerGone();
  } else if (obeyed(task, status)) {
    ended.state = TaskState::kStopped;
    if (firstFailed(false))
      judge();
    else
      stop(std::nullopt);
  } else if (!scheduleRestart(task, status)) {
    const bool died = isWorthRestarting(status) && !isInVain(task, status);
    ended.state = died && canSpare(task) ? TaskState::kMissed : TaskState::kFailed;
    if (ended.state == TaskState::kMissed) {
      forgetFailure(task);
      noteWorkerGone();
    }
  }
  DTF_CHECK_MSG(!alive(task), ended.id.name());
  if (is_root && root_by_notice_) *root_ = causeOf(task);
  if (ended.state == TaskState::kFailed && !stopping()) {
    if (!ended.first_sign) ended.first_sign = clock_.now();
    judgeBy(clock_.now() + (mayBeDerived(status) ? limits_.settle : Duration(0)));
  }
  onTime();
}

bool TaskMonitor::chiefDone() const {
  return !limits_.serves && std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return task.id == kChief && task.state == TaskState::kDone;
  });
}

// The job has its result: a task that was lost, that somebody told to end, or that is back and finds nobody, takes
// nothing from it.
bool TaskMonitor::isLate(const ExitStatus& status) const {
  return chiefDone() && (status.signal != 0 || status.wasToldToEnd() || mayBeDerived(status));
}

void TaskMonitor::forgetFailure(size_t task) {
  tasks_[task].first_sign.reset();
  const bool judged = std::any_of(tasks_.begin(), tasks_.end(),
                                  [](const Task& other) { return other.first_sign.has_value(); });
  if (!judged) judge_time_.reset();
}

// Another process would meet the same: the task said why it failed, and that says so; it is a ps that
// has given up its peers; or a ps stands still, which is the cause.
bool TaskMonitor::isInVain(size_t task, const ExitStatus& status) const {
  const std::optional<FailedNotice>& notice = tasks_[task].notice;
  if (notice && !isWorthRestarting({exitCodeOfWord(notice->code), 0})) return true;
  if (!mayBeDerived(status)) return false;
  if (tasks_[task].id.job == JobKind::kPs) return true;
  const std::optional<size_t> frozen = suspendedFirst();
  return frozen && tasks_[*frozen].id.job == JobKind::kPs;
}

// True: the task gets another process. What it lost with this one is the protocol's to mend.
bool TaskMonitor::scheduleRestart(size_t task, const ExitStatus& status) {
  Task& of = tasks_[task];
  if (stopping() || chiefDone() || isInVain(task, status)) return false;
  const TimePoint now = clock_.now();
  std::optional<Duration> ran;
  if (of.was_ready) ran = of.ready_since ? now - *of.ready_since : Duration{0};
  const std::optional<Duration> pause = of.policy.onFailure(status, ran, now);
  if (!pause) return false;
  of.state = TaskState::kWaiting;
  of.restart_time = now + *pause;
  of.restarted_after = status.text();
  forgetFailure(task);
  return true;
}

// A step has the workers that it needs without it.
bool TaskMonitor::canSpare(size_t task) const {
  const Task& of = tasks_[task];
  const bool is_spare = of.id.job == JobKind::kWorker && of.id != kChief && of.was_ready;
  if (!is_spare || stopping()) return false;
  const auto missed = std::count_if(tasks_.begin(), tasks_.end(), [&of](const Task& other) {
    return &other != &of && (other.state == TaskState::kMissed || other.given_up);
  });
  return static_cast<uint32_t>(missed) < limits_.spares;
}

// The others have finished: nobody is left for a worker that is still on its way back.
void TaskMonitor::dropLate() {
  dropWaiting();
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (tasks_[task].state == TaskState::kStarting && restarts(task) > 0)
      orders_.push_back(SignalOrder{task, SIGKILL});
}

void TaskMonitor::dropWaiting() {
  for (Task& task : tasks_)
    if (task.state == TaskState::kWaiting) task.state = TaskState::kStopped;
}

std::vector<size_t> TaskMonitor::takeStarts() {
  std::vector<size_t> due;
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (tasks_[task].state == TaskState::kWaiting && clock_.now() >= tasks_[task].restart_time)
      due.push_back(task);
  return due;
}

void TaskMonitor::onLost(size_t task, uint32_t process) {
  const bool is_that_process = processIndex(task) == process;
  if (stopping() || !is_that_process || !alive(task)) return;
  if (limits_.restarts.max == 0 && !canSpare(task)) return;
  if (tasks_[task].notice) return;  // it ends by itself, and has said why
  tasks_[task].given_up = limits_.restarts.max == 0;
  orders_.push_back(SignalOrder{task, SIGKILL});
}

void TaskMonitor::onSuspended(size_t task, bool suspended) {
  Task& of = tasks_.at(task);
  if (!suspended || !alive(task))
    of.suspended_since.reset();
  else if (!of.suspended_since)
    of.suspended_since = clock_.now();
}

void TaskMonitor::onError(std::optional<size_t> task, const Error& error) {
  DTF_CHECK(!task || *task < tasks_.size());
  DTF_CHECK(exitCode(error.code()) != 0);
  if (!stopping()) stop(RootCause{task, error.message(), "", exitCode(error.code())});
}

void TaskMonitor::onStopRequest(int signal) {
  DTF_CHECK(signal > 0);
  if (!stopping() && judge_time_) judge();
  if (stopping()) return killAll();
  if (saving()) {
    if (clock_.now() < ignore_until_) return;
    stop(std::nullopt);
    return killAll();
  }
  // A job that has its result is not interrupted: what is left of it is only ended sooner.
  if (!chiefDone()) stop_signal_ = signal;
  if (!askChiefToSave()) stop(std::nullopt);
}

// The chief has the others end with it. Before everyone is up there is nothing to save.
bool TaskMonitor::askChiefToSave() {
  DTF_CHECK(!save_time_ && !stopping());
  if (limits_.save == Duration{0} || !allReady()) return false;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (tasks_[task].id != kChief || !alive(task)) continue;
    save_time_ = clock_.now() + limits_.save;
    ignore_until_ = clock_.now() + kSameRequest;
    orders_.push_back(SignalOrder{task, SIGTERM});
    return true;
  }
  return false;
}

// The chief was asked to save and has ended as the signal asks, unsaved: it had nothing to save
// yet, or its patience with the disk is over. The others may only have seen it go.
bool TaskMonitor::obeyed(size_t task, ExitStatus status) const {
  return saving() && tasks_[task].id == kChief && status.shellCode() == 128 + SIGTERM;
}

void TaskMonitor::onTime() {
  const TimePoint now = clock_.now();
  if (!stopping()) {
    if (judge_time_ && (now >= *judge_time_ || !anyAlive()))
      judge();
    else if (save_time_ && now >= *save_time_)
      stop(std::nullopt);
    else if (!judge_time_)
      checkDeadlines();
    if (!stopping()) killFrozenPs();
  } else if (!kill_time_ && now >= *stop_time_ + limits_.grace) {
    killAll();
  }
}

std::vector<SignalOrder> TaskMonitor::takeOrders() {
  return std::exchange(orders_, {});
}

bool TaskMonitor::finished() const {
  const bool waiting = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return task.state == TaskState::kWaiting || task.state == TaskState::kPlanned;
  });
  if (!anyAlive()) return stopping() || (!judge_time_ && !waiting);
  return kill_time_ && clock_.now() >= *kill_time_ + limits_.grace;
}

bool TaskMonitor::allReady() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.was_ready; });
}

Outcome TaskMonitor::outcome() const {
  if (root_) return Outcome::kFailed;
  if (stop_signal_ == 0) return Outcome::kDone;
  return (saving() || limits_.serves) && !anyAlive() ? Outcome::kStopped : Outcome::kInterrupted;
}

int TaskMonitor::jobExitCode() const {
  if (root_) return root_->exit_code;
  if (stop_signal_ == 0 || (outcome() == Outcome::kStopped && stop_signal_ == SIGTERM)) return 0;
  return 128 + stop_signal_;
}

bool TaskMonitor::alive(size_t task) const {
  const TaskState state = tasks_.at(task).state;
  return state == TaskState::kStarting || state == TaskState::kReady;
}

TasksUp TaskMonitor::up(JobKind job) const {
  TasksUp result;
  for (const Task& task : tasks_) {
    if (task.id.job != job) continue;
    ++result.total;
    if (task.state == TaskState::kReady) ++result.up;
  }
  return result;
}

void TaskMonitor::judgeBy(TimePoint time) {
  judge_time_ = judge_time_ ? std::min(*judge_time_, time) : time;
}

// The task whose failure showed first: of those that can't be derived, else, if asked for, of all.
std::optional<size_t> TaskMonitor::firstFailed(bool even_derived) const {
  std::optional<size_t> best;
  const auto derived = [this](size_t task) {
    const Task& of = tasks_[task];
    DTF_CHECK_MSG(of.notice || of.exit, of.id.name());  // what else was its first sign?
    return of.notice ? mayBeDerived(of.notice->code) : mayBeDerived(*of.exit);
  };
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (!tasks_[task].first_sign || (derived(task) && !even_derived)) continue;
    const auto rank = [&](size_t of) { return std::pair(derived(of), *tasks_[of].first_sign); };
    if (!best || rank(task) < rank(*best)) best = task;
  }
  return best;
}

void TaskMonitor::judge() {
  const std::optional<size_t> root = firstFailed(true);
  DTF_CHECK(root.has_value());
  // Who lost a peer, or waited in vain, is not the cause where a task stands still.
  if (const std::optional<size_t> frozen = suspendedFirst(); frozen && !firstFailed(false))
    return stop(causeOfSuspended(*frozen, *root));
  root_by_notice_ = !tasks_[*root].exit.has_value();
  stop(causeOf(*root));
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
  const std::string missing = namesNotReady();
  const bool late = std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& task) {
    const bool planned = task.state == TaskState::kPlanned;
    const bool starting = task.state == TaskState::kStarting;
    return (planned && now >= start_time_ + limits_.start) ||
           (starting && now >= task.started + limits_.start);
  });
  if (late)
    return fail(fmt::format("not ready within {:g} s of its start (timeouts.start_seconds): {}",
                            toSeconds(limits_.start), missing),
                TaskState::kStarting);
  if (finish_time_ && now >= *finish_time_ && anyAlive())
    fail("the workers have finished, and these tasks have not in time: " + namesAlive(),
         TaskState::kReady);
}

// Nobody but the kernel knows: it answers no question, and its socket takes connections still. Clients of
// a task that serves have deadlines of their own.
void TaskMonitor::killFrozenPs() {
  if (limits_.restarts.max == 0 || limits_.serves) return;
  const TimePoint now = clock_.now();
  const bool workers_run = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return task.id.job == JobKind::kWorker && task.state == TaskState::kReady &&
           !task.suspended_since;
  });
  for (size_t task = 0; task < tasks_.size(); ++task) {
    Task& of = tasks_[task];
    if (of.id.job != JobKind::kPs) continue;
    if (!of.suspended_since || !workers_run)
      of.missed_since.reset();
    else if (!of.missed_since)
      of.missed_since = now;
    else if (now - *of.missed_since > limits_.lease && alive(task))
      orders_.push_back(SignalOrder{task, SIGKILL});
  }
}

void TaskMonitor::stop(std::optional<RootCause> root) {
  DTF_CHECK(!stopping() && !root_);
  DTF_CHECK(!root || root->exit_code != 0);  // a job that failed must not end with 0
  root_ = std::move(root);
  stop_time_ = clock_.now();
  dropWaiting();
  order(SIGTERM);
}

void TaskMonitor::killAll() {
  DTF_CHECK(stopping());
  if (!kill_time_) kill_time_ = clock_.now();
  order(SIGKILL);
}

void TaskMonitor::order(int signal) {
  DTF_CHECK(signal == SIGTERM || signal == SIGKILL);
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (alive(task)) orders_.push_back(SignalOrder{task, signal});
}

void TaskMonitor::noteWorkerGone() {
  if (limits_.serves) return;
  const bool last = std::none_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    const bool is_gone = task.state == TaskState::kDone || task.state == TaskState::kMissed ||
                         task.state == TaskState::kStopped;
    return task.id.job == JobKind::kWorker && !is_gone;
  });
  const TimePoint now = clock_.now();
  const bool some = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return task.id.job == JobKind::kWorker && task.state == TaskState::kDone;
  });
  if (!finish_time_ && some) finish_time_ = now + limits_.finish;
  if (last && finish_time_) finish_time_ = std::min(*finish_time_, now + limits_.last);
}

bool TaskMonitor::anyAlive() const {
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (alive(task)) return true;
  return false;
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
