#include "launcher/end_of_job.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::launcher {

bool mayBeDerived(const std::string& code_word) {
  return code_word == errorCodeName(ErrorCode::kUnavailable) ||
         code_word == errorCodeName(ErrorCode::kDeadline);
}

bool mayBeDerived(const ExitStatus& status) {
  return status.signal == 0 && mayBeDerived(exitCodeWord(status.code));
}

Verdict verdict(std::span<const TaskFacts> tasks, const JobPhase& phase, size_t task,
                const ProcessEnd& end) {
  DTF_CHECK(task < tasks.size());
  const ExitStatus& status = end.status;
  if (status.success() || (phase.saves && status.paused())) return Verdict::kDone;
  if (phase.stops && !end.is_cause) return Verdict::kStopped;
  if (phase.serves) return Verdict::kFailed;
  const bool is_chief = tasks[task].id == kChief;
  if (isOver(tasks, phase)) return is_chief ? Verdict::kDone : Verdict::kStopped;
  if (status.signal != 0 && !end.said_why && haveOthersFinished(tasks, task)) return Verdict::kDone;
  return Verdict::kFailed;
}

bool isOver(std::span<const TaskFacts> tasks, const JobPhase& phase) {
  return !phase.serves && (phase.has_result || isChiefDone(tasks));
}

bool isChiefDone(std::span<const TaskFacts> tasks) {
  return std::any_of(tasks.begin(), tasks.end(), [](const TaskFacts& task) {
    return task.id == kChief && task.state == TaskState::kDone;
  });
}

bool isLate(const ExitStatus& status) {
  return status.signal != 0 || status.wasToldToEnd() || mayBeDerived(status);
}

std::vector<uint32_t> finishedWorkers(std::span<const TaskFacts> tasks) {
  std::vector<uint32_t> ranks;
  for (const TaskFacts& task : tasks)
    if (task.isFinishedWorker()) ranks.push_back(task.id.index);
  return ranks;
}

bool hasAWorkerFinished(std::span<const TaskFacts> tasks) {
  return std::any_of(tasks.begin(), tasks.end(),
                     [](const TaskFacts& task) { return task.isFinishedWorker(); });
}

bool haveAllWorkersGone(std::span<const TaskFacts> tasks) {
  return std::none_of(tasks.begin(), tasks.end(), [](const TaskFacts& task) {
    const bool is_gone = task.isFinishedWorker() || task.state == TaskState::kMissed ||
                         task.state == TaskState::kStopped;
    return task.id.job == JobKind::kWorker && !is_gone;
  });
}

bool haveOthersFinished(std::span<const TaskFacts> tasks, size_t chief) {
  DTF_CHECK(chief < tasks.size());
  if (tasks[chief].id != kChief || tasks.size() == 1) return false;
  for (size_t task = 0; task < tasks.size(); ++task) {
    const bool is_spared =
        tasks[task].id.job == JobKind::kWorker && tasks[task].state == TaskState::kMissed;
    if (task != chief && tasks[task].state != TaskState::kDone && !is_spared) return false;
  }
  return true;
}

}  // namespace dtf::launcher
