#pragma once

// The end of a job, from the states of its tasks: which task gets another process, and which loss
// no longer matters. Pure; README.md, "The end of a job", has the protocol.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "launcher/exit_status.h"

namespace dtf::launcher {

//   state              when                          to
//   planned            its process is made           starting
//   starting           it says that it is ready      ready
//   starting, ready    exit code 0                   done     (early or not: finished, not failed)
//   starting, ready,   a chief that was killed       done     (it was at its own end)
//   waiting            behind its result, or when
//                      all others are done
//   starting, ready    any other end                 waiting  (its restarts are not used up;
//                                                             restart_policy.h)
//   starting, ready    any other end                 missed   (a worker that died, and which the
//                                                             job can spare)
//   starting, ready    any other end                 failed   (before the launcher asked anyone to
//                                                             stop)
//   waiting            its pause is over             starting
//   waiting            the others stop or are done   stopped
//   starting, ready    any other end                 stopped  (after: derived from the root cause)
enum class TaskState : uint8_t {
  kPlanned,
  kStarting,
  kReady,
  kWaiting,
  kMissed,
  kDone,
  kFailed,
  kStopped
};

// Whether a task in this state is to get a process.
inline bool awaitsProcess(TaskState state) {
  return state == TaskState::kPlanned || state == TaskState::kWaiting;
}

// Value type.
struct TaskFacts {
  TaskId id;
  TaskState state = TaskState::kPlanned;
  bool has_finished = false;  // the running process has reported that its part of the job is done

  // Whether this is a worker that nobody waits for any more. Its process may still host a shard.
  bool isFinishedWorker() const {
    return id.job == JobKind::kWorker && (has_finished || state == TaskState::kDone);
  }
};

// Whether a task that ends with this code ("unavailable", "deadline") may have lost another one, or
// waited for it in vain: then its end is perhaps not the first failure.
bool mayBeDerived(const std::string& code_word);
bool mayBeDerived(const ExitStatus& status);

// How far the job is. Value type.
struct JobPhase {
  bool has_result = false;  // the chief has reported it: trained, saved where it saves, evaluated
  bool saves = false;       // a person has asked for its end, and it saves
  bool stops = false;       // the launcher ends all tasks
  bool serves = false;      // no job: it has no result
};

// How a process ended. Value type.
struct ProcessEnd {
  ExitStatus status;
  bool said_why = false;  // it had reported a failure
  bool is_cause = false;  // of the end of the job
};

// What that means for its job.
//
//   the process ended         and                                   then
//   with 0                    -                                     kDone
//   with 75                   the job saves, to be paused           kDone
//   in any way                the launcher ends all, for another    kStopped
//                             reason
//   in any other way          the chief has ended with 0            kStopped
//   in any other way,         it has reported its result            kDone: nothing was left to do
//   the chief                                                       but to leave
//   in any other way,         the chief has reported its result     kStopped
//   another
//   by a signal, the chief,   all others have ended with 0          kDone: they do so when the
//   without a word                                                  training is over and saved
//   before all of these       -                                     kFailed, unless a restart
//                                                                   (restart_policy.h) or a spare
//                                                                   worker mends it
enum class Verdict : uint8_t { kDone, kStopped, kFailed };
Verdict verdict(std::span<const TaskFacts> tasks, const JobPhase& phase, size_t task,
                const ProcessEnd& end);

// Nothing is left to be lost, whoever dies: no task is started again, and what doesn't end by
// itself is ended.
bool isOver(std::span<const TaskFacts> tasks, const JobPhase& phase);

// The job has its result. A service has none.
bool isChiefDone(std::span<const TaskFacts> tasks);

// Returns whether the end of a job brings such an end of a task with it: by a signal, by order, or
// because its peers have gone.
bool isLate(const ExitStatus& status);

// Returns the ranks of the workers that have finished: no task waits for them again.
std::vector<uint32_t> finishedWorkers(std::span<const TaskFacts> tasks);

// Returns whether some worker has finished: the training is over.
bool hasAWorkerFinished(std::span<const TaskFacts> tasks);

// Returns whether no worker has anything left to do: each has finished, or is gone for good.
bool haveAllWorkersGone(std::span<const TaskFacts> tasks);

// All but `chief`, which is the chief, have ended with 0, but for workers that the job could spare.
// Tasks end with 0 once the training is over, and the chief has saved or says why not. A chief that
// is killed later without a word was at its own end; its successor would wait in vain.
bool haveOthersFinished(std::span<const TaskFacts> tasks, size_t chief);

}  // namespace dtf::launcher
