#include "tests/sim/sim_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/base/check.h"
#include "launcher/monitor_limits.h"
#include "tests/sim/sim_ps.h"

namespace dtf::sim {

namespace {

// From a fatal failure to the end of the job: two seconds of grace, and some.
constexpr Duration kFailureEndsWithin = std::chrono::seconds(5);

std::vector<TaskId> tasksOf(const Plan& plan) {
  std::vector<TaskId> tasks;
  for (uint32_t i = 0; i < plan.ps_tasks; ++i) tasks.push_back({JobKind::kPs, i});
  for (uint32_t i = 0; i < plan.workers; ++i) tasks.push_back({JobKind::kWorker, i});
  return tasks;
}

launcher::MonitorLimits limitsFor(const Plan& plan, uint32_t restarts_max) {
  cluster::JobSpec job = jobOf(plan);
  job.launch.restarts.max = restarts_max;
  job.launch.restarts.refill_minutes = plan.refill_seconds / 60;
  job.train.emplace().replication = plan.model(1).replication;
  launcher::MonitorLimits limits = launcher::limitsOf(job);
  if (plan.checkpoints) limits.save = fromSeconds(plan.timeouts.stop_seconds + 1);
  return limits;
}

// Follows the table of exit codes in launcher/USING.md.
bool neverStartedAgain(const launcher::ExitStatus& status) {
  const int code = status.shellCode();
  for (const ErrorCode never :
       {ErrorCode::kTrainingFailed, ErrorCode::kUsage, ErrorCode::kBadData, ErrorCode::kCannotWrite,
        ErrorCode::kPermission, ErrorCode::kBadConfig, ErrorCode::kDeadline})
    if (code == exitCode(never)) return true;
  return code == 128 + SIGTERM;  // SIGTERM was the request to end
}

}  // namespace

SimLauncher::SimLauncher(const Plan& plan, uint32_t restarts_max, const Clock& clock, Hooks hooks)
    : clock_(clock),
      hooks_(std::move(hooks)),
      backups_(plan.hasBackups() && !plan.workers_host ? plan.workers - plan.aggregate : 0),
      limits_(limitsFor(plan, restarts_max)),
      monitor_(tasksOf(plan), clock, limits_),
      seen_(monitor_.size()) {}

size_t SimLauncher::taskOf(TaskId id) const {
  for (size_t task = 0; task < monitor_.size(); ++task)
    if (monitor_.id(task) == id) return task;
  DTF_CHECK_MSG(false, id.name());
  return 0;
}

void SimLauncher::onStarted(TaskId id) {
  const size_t task = taskOf(id);
  seen_[task].missed = false;
  if (has_result_)
    hooks_.complain(fmt::format("{} is started again, though the job has its result", id.name()));
  if (seen_[task].ended_for_good)
    hooks_.complain(fmt::format("{} is started again, which mends nothing", id.name()));
  monitor_.onSpawned(task);
}

void SimLauncher::onReady(TaskId id) {
  seen_[taskOf(id)].was_ready = true;
  monitor_.onReady(taskOf(id));
}

// More ends within the refill time of a budget than it has restarts.
bool SimLauncher::overBudget(const Seen& seen) const {
  const size_t count = seen.ends.size();
  const size_t max = limits_.restarts.max;
  return count > max &&
         seen.ends[count - 1] - seen.ends[count - 1 - max] <= limits_.restarts.refill;
}

// A backup worker whose budget is spent: the job makes its steps without it.
bool SimLauncher::canMiss(TaskId id, const launcher::ExitStatus& status) const {
  const Seen& seen = seen_[taskOf(id)];
  const bool is_backup = id.job == JobKind::kWorker && id != kChief && seen.was_ready;
  if (!is_backup || neverStartedAgain(status)) return false;
  const auto missed =
      std::count_if(seen_.begin(), seen_.end(), [](const Seen& other) { return other.missed; });
  return missed < backups_;
}

void SimLauncher::onEnded(TaskId id, launcher::ExitStatus status,
                          const std::optional<Error>& said) {
  const size_t task = taskOf(id);
  Seen& seen = seen_[task];
  const bool gives_up = id.job == JobKind::kPs && status.signal == 0;  // it has lost its peers
  if (!status.success()) {
    seen.ends.push_back(clock_.now());
    seen.ended_for_good = !seen.was_ready || neverStartedAgain(status) || gives_up;
    if (seen.ended_for_good && !failed_at_ && !chief_done_ && !has_result_)
      failed_at_ = clock_.now();
    seen.missed = overBudget(seen) && canMiss(id, status);
    may_fail_ |= seen.ended_for_good || (overBudget(seen) && !seen.missed);
  }
  chief_finished_ |= id == kChief && status.success();
  chief_done_ |= chief_finished_ && !may_fail_;
  if (said)
    monitor_.onFailedNotice(task, {std::string(errorCodeName(said->code())), said->message()});
  monitor_.onExit(task, status);
  if (monitor_.state(task) == launcher::TaskState::kWaiting)
    hooks_.log("dtf-launch: " + monitor_.restartText(task));
  const bool given_up = !status.success() && overBudget(seen) && !seen.missed &&
                        monitor_.state(task) != launcher::TaskState::kWaiting;
  if (given_up && !failed_at_ && !chief_finished_) failed_at_ = clock_.now();
  if (monitor_.state(task) == launcher::TaskState::kMissed) {
    ++missed_;
    hooks_.log(fmt::format("dtf-launch: goes on without {}", id.name()));
  }
  carryOut();
}

void SimLauncher::onLost(TaskId worker, uint32_t process) {
  monitor_.onLost(taskOf(worker), process);
  carryOut();
}

void SimLauncher::onResult(bool is_done) {
  has_result_ |= is_done;
  monitor_.onResult(is_done);
  carryOut();
}

void SimLauncher::onStopRequest() {
  may_fail_ |= !monitor_.allReady() || limits_.save == Duration{0};  // there is nothing to save
  monitor_.onStopRequest(SIGTERM);
  carryOut();
}

void SimLauncher::tick() {
  for (size_t task = 0; task < monitor_.size(); ++task)
    monitor_.onSuspended(task, monitor_.alive(task) && hooks_.suspended(monitor_.id(task)));
  monitor_.onTime();
  for (const size_t task : monitor_.takeStarts()) hooks_.start(monitor_.id(task));
  carryOut();
  if (!failed_at_ || said_late_ || finished() || clock_.now() - *failed_at_ < kFailureEndsWithin)
    return;
  said_late_ = true;
  hooks_.complain("dtf-launch has not ended a job that nothing mends: " +
                  monitor_.names(launcher::TaskMonitor::Named::kAlive));
}

void SimLauncher::carryOut() {
  const bool ends = monitor_.stopping();
  for (const launcher::SignalOrder& order : monitor_.takeOrders()) {
    const TaskId id = monitor_.id(order.task);
    if (!monitor_.alive(order.task)) continue;
    hooks_.log(fmt::format("dtf-launch{}: signal {} to {}", ends ? ", ending the job" : "",
                           order.signal, id.name()));
    hooks_.signal(id, order.signal);
  }
}

void SimLauncher::judge(bool must_finish, bool has_result) const {
  const launcher::Outcome outcome = monitor_.outcome();
  const std::string name(launcher::outcomeName(outcome));
  const std::string why = monitor_.rootCause() ? ": " + monitor_.rootCause()->what : "";
  hooks_.log(fmt::format("dtf-launch: {}{}", name, why));
  const bool good = outcome == launcher::Outcome::kDone || outcome == launcher::Outcome::kStopped;
  if (must_finish && !good)
    hooks_.complain(fmt::format("dtf-launch says that the job {}{}", name, why));
  if (!good && (chief_done_ || has_result_))
    hooks_.complain(
        fmt::format("dtf-launch says that the job {}{}, and it has its result", name, why));
  if (outcome == launcher::Outcome::kDone && !has_result && !may_fail_)
    hooks_.complain("dtf-launch says that the job is done, and it has no result");
}

}  // namespace dtf::sim
