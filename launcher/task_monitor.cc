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
  DTF_CHECK_MSG(awaitsProcess(of.state), of.id.name());
  if (of.state == TaskState::kWaiting) ++of.restarts;
  DTF_CHECK_MSG(of.restarts == processIndex(task), of.id.name());
  of.state = TaskState::kStarting;
  of.started = clock_.now();
  of.ready_since.reset();
  of.exit.reset();
  of.awaited.clear();
  of.notice.reset();
  of.first_sign.reset();
  of.has_finished = false;
}

void TaskMonitor::onReady(size_t task) {
  // A process that does not exist says nothing.
  DTF_CHECK_MSG(tasks_.at(task).state != TaskState::kPlanned, tasks_[task].id.name());
  if (tasks_[task].state != TaskState::kStarting) return;
  tasks_[task].state = TaskState::kReady;
  tasks_[task].was_ready = true;
  tasks_[task].ready_since = clock_.now();
  // Its last process died with the request, or before it.
  if (tasks_[task].id == kChief && saving()) orders_.push_back(SignalOrder{task, SIGTERM});
}

void TaskMonitor::onFailedNotice(size_t task, FailedNotice notice) {
  Task& failed = tasks_.at(task);
  if (failed.notice || !alive(task)) return;
  failed.notice = std::move(notice);
  if (stopping() || isOver()) return;
  failed.first_sign = clock_.now();
  judgeBy(clock_.now() + limits_.grace);  // it is about to exit; should it not, it has still failed
}

void TaskMonitor::onFinished(size_t task) {
  Task& finished = tasks_.at(task);
  if (finished.id.job != JobKind::kWorker || !alive(task)) return;
  finished.has_finished = true;
  noteGone(task);
}

void TaskMonitor::onExit(size_t task, ExitStatus status) {
  Task& ended = tasks_.at(task);
  DTF_CHECK_MSG(alive(task), ended.id.name());
  ended.exit = status;
  ended.has_finished = false;
  ended.suspended_since.reset();
  ended.missed_since.reset();
  ended.given_up = false;
  const bool is_root = root_ && root_->task == task;
  switch (verdict(facts(), phase(), task, {status, ended.notice.has_value(), is_root})) {
    case Verdict::kDone:
      ended.state = TaskState::kDone;
      if (!status.success()) forgetFailure(task);
      noteGone(task);
      if (!limits_.serves) dropLate();
      break;
    case Verdict::kStopped:
      ended.state = TaskState::kStopped;
      forgetFailure(task);
      noteGone(task);
      break;
    case Verdict::kFailed:
      onFailure(task, status);
  }
  // Those who are left would wait for it.
  const bool is_awaited = ended.id == kChief || limits_.hostsShard(ended.id);
  const bool left_well = status.success() || (saving() && status.paused());
  const bool is_lost = !left_well && ended.state != TaskState::kFailed;
  if (isOver() && is_awaited && is_lost && !stopping()) stop(std::nullopt);
  DTF_CHECK_MSG(!alive(task), ended.id.name());
  if (is_root && root_by_notice_) *root_ = causeOf(task);
  if (ended.state == TaskState::kFailed && !stopping()) {
    if (!ended.first_sign) ended.first_sign = clock_.now();
    judgeBy(clock_.now() + (mayBeDerived(status) ? limits_.settle : Duration(0)));
  }
  onTime();
}

// It is mended by another process, can be spared, or is the job's failure.
void TaskMonitor::onFailure(size_t task, const ExitStatus& status) {
  Task& ended = tasks_[task];
  if (obeyed(task, status)) {
    ended.state = TaskState::kStopped;
    firstFailed(false) ? judge() : stop(std::nullopt);
  } else if (!scheduleRestart(task, status)) {
    const bool died = isWorthRestarting(status) && !isInVain(task, status);
    ended.state = died && canSpare(task) ? TaskState::kMissed : TaskState::kFailed;
    if (ended.state == TaskState::kMissed) forgetFailure(task), noteGone(task);
  }
}

// A task that is on its way back comes too late: a worker has nothing to do, and for a host of a
// shard the chief would wait.
void TaskMonitor::onResult(bool is_done) {
  DTF_CHECK(!limits_.serves);
  if (has_result_) return;
  const bool has_failed = root_ || judge_time_;
  if (has_failed && !is_done) return;
  has_result_ = true;
  if (root_ && root_->task) root_.reset();
  for (size_t task = 0; task < tasks_.size(); ++task) forgetFailure(task);
  for (Task& task : tasks_)
    if (!limits_.hostsShard(task.id) && task.id != kChief && task.state == TaskState::kWaiting)
      task.state = TaskState::kStopped;
  const bool is_late = std::any_of(tasks_.begin(), tasks_.end(), [this](const Task& task) {
    return limits_.hostsShard(task.id) && task.state == TaskState::kWaiting;
  });
  if (is_late && !stopping()) stop(std::nullopt);
}

std::vector<TaskFacts> TaskMonitor::facts() const {
  std::vector<TaskFacts> facts;
  for (const Task& task : tasks_) facts.push_back({task.id, task.state, task.has_finished});
  return facts;
}

void TaskMonitor::forgetFailure(size_t task) {
  tasks_[task].first_sign.reset();
  const bool judged = std::any_of(tasks_.begin(), tasks_.end(),
                                  [](const Task& other) { return other.first_sign.has_value(); });
  if (!judged) judge_time_.reset();
}

// Returns whether another process of the task would fail the same way:
// - the task has reported an error that a restart doesn't mend;
// - it is a ps that has given up its peers, and its values are lost with it. A worker that hosts a
//   shard may have lost a peer in its own training instead: it is started again, and its shard
//   takes the values of its replica;
// - a host of a shard is suspended: that one is the cause.
bool TaskMonitor::isInVain(size_t task, const ExitStatus& status) const {
  const std::optional<FailedNotice>& notice = tasks_[task].notice;
  if (notice && !isWorthRestarting({exitCodeOfWord(notice->code), 0})) return true;
  if (!mayBeDerived(status)) return false;
  if (tasks_[task].id.job == JobKind::kPs) return true;
  const std::optional<size_t> frozen = suspendedFirst();
  return frozen && limits_.hostsShard(tasks_[*frozen].id);
}

// True: the task gets another process. What it lost with this one is the protocol's to mend.
bool TaskMonitor::scheduleRestart(size_t task, const ExitStatus& status) {
  Task& of = tasks_[task];
  if (stopping() || isOver() || isInVain(task, status)) return false;
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
  DTF_CHECK(task < tasks_.size());
  const Task& of = tasks_[task];
  const bool is_spare = of.id.job == JobKind::kWorker && of.id != kChief && of.was_ready;
  if (!is_spare || limits_.workers_host || stopping()) return false;
  const auto missed = std::count_if(tasks_.begin(), tasks_.end(), [&of](const Task& other) {
    return &other != &of && (other.state == TaskState::kMissed || other.given_up);
  });
  return static_cast<uint32_t>(missed) < limits_.spares;
}

// Nobody is left for who is still on its way back: a worker when the chief has ended, the chief
// when all others have.
void TaskMonitor::dropLate() {
  const std::vector<TaskFacts> all = facts();
  const bool is_chief_done = isChiefDone(all);
  for (size_t task = 0; task < tasks_.size(); ++task) {
    if (!is_chief_done && !haveOthersFinished(all, task)) continue;
    TaskState& state = tasks_[task].state;
    if (state == TaskState::kWaiting)
      state = is_chief_done ? TaskState::kStopped : TaskState::kDone;
    else if (state == TaskState::kStarting && restarts(task) > 0)
      orders_.push_back(SignalOrder{task, SIGKILL});
  }
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
  if (!isOver()) stop_signal_ = signal;
  if (!askChiefToSave()) stop(std::nullopt);
}

// The chief has the others end with it. Before everyone is up there is nothing to save. A chief
// that is being restarted gets the request when it is ready: SIGTERM would end it before, unsaved.
bool TaskMonitor::askChiefToSave() {
  DTF_CHECK(!save_time_ && !stopping());
  if (limits_.save == Duration{0} || !allReady()) return false;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const bool comes_back = tasks_[task].state == TaskState::kWaiting;
    if (tasks_[task].id != kChief || (!alive(task) && !comes_back)) continue;
    save_time_ = clock_.now() + limits_.save;
    ignore_until_ = clock_.now() + kSameRequest;
    if (tasks_[task].state == TaskState::kReady) orders_.push_back(SignalOrder{task, SIGTERM});
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
    if (!stopping()) killFrozen();
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
  return (saving() || limits_.serves || has_result_) && !anyAlive() ? Outcome::kStopped
                                                                    : Outcome::kInterrupted;
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

void TaskMonitor::stop(std::optional<RootCause> root) {
  DTF_CHECK(!stopping() && !root_);
  DTF_CHECK(!root || root->exit_code != 0);  // a job that failed must not end with 0
  root_ = std::move(root);
  stop_time_ = clock_.now();
  for (Task& task : tasks_)
    if (task.state == TaskState::kWaiting) task.state = TaskState::kStopped;
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

bool TaskMonitor::anyAlive() const {
  for (size_t task = 0; task < tasks_.size(); ++task)
    if (alive(task)) return true;
  return false;
}

}  // namespace dtf::launcher
