#pragma once

// The chief's supervisor, as TensorFlow's: it restores or says that training starts anew, saves now
// and then beside the training, and at the end. Trouble with the disk never stops training: it is
// said, retried, and said again at the end.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/ps/parameter_client.h"
#include "common/ps/replication_rules.h"
#include "common/train/checkpointer.h"

namespace dtf::train {

// For status pages and the summary.
struct CheckpointStatus {
  std::optional<uint64_t> last_step;  // saved or restored
  uint64_t saved = 0;                 // checkpoints
  uint64_t failed = 0;                // attempts
  std::string degraded;               // why the last attempt failed; empty: it didn't
};

// Where saves run beside the training, for those who have no threads to spare: a simulation.
class SaveRunner {
 public:
  virtual ~SaveRunner() = default;
  // Runs `save` soon, not from within start(); the one before has ended.
  virtual void start(std::function<void()> save) = 0;
  // Returns when no save runs.
  virtual void wait() = 0;
};

// Owns: a thread that saves, unless it is given a runner.
// Borrows: `checkpointer`, `clock`, `runner`.
// Threads: onStep() and the rest from the training thread, status() from any.
// Blocks: onStep() a round trip to the ps when a checkpoint at a step is due, else never;
// saveAtRest() until a save under way is done; the destructor until one that is being written is,
// while one that still waits for its cut is called off.
class Supervisor {
 public:
  using Report = std::function<void(const SavedCheckpoint&)>;  // on the supervisor's thread

  Supervisor(Checkpointer& checkpointer, const cluster::CheckpointSpec& spec, ps::CutKind cut_kind,
             const Clock& clock, Report report, SaveRunner* runner = nullptr);
  ~Supervisor();

  // After each answer of the ps. Starts a checkpoint when one is due.
  void onStep(const ps::StepState& state);

  // When all workers are at rest: at the end, or because the job was asked to stop.
  // Errors: those of Checkpointer::save, when the last checkpoint can't be written: the caller
  // would lose work. status() says so too.
  void saveAtRest();

  // Never waits for a save.
  CheckpointStatus status() const;

 private:
  void run();
  void saveOnce();
  uint64_t announcedAhead() const;  // steps
  bool isDue(uint64_t next_step);
  bool claimSave(bool due) DTF_EXCLUDES(mutex_);
  void succeeded(bool saved) DTF_EXCLUDES(mutex_);
  void failed(const Error& error) DTF_EXCLUDES(mutex_);
  void countFailureAtRest(const Error& error) DTF_EXCLUDES(mutex_);

  Checkpointer& checkpointer_;
  const cluster::CheckpointSpec spec_;
  const ps::CutKind cut_kind_;
  const Clock& clock_;
  const Report report_;
  SaveRunner* const runner_;  // null: thread_ saves

  TimePoint next_time_;     // training thread
  uint64_t next_step_ = 0;  // ditto; 0: not known yet

  // Held for a look or a note: never over a call of the checkpointer, the report or the log.
  mutable Mutex mutex_;
  CondVar changed_;
  // Due, and not claimed: a save runs, or one that failed waits for its retry.
  bool overdue_ DTF_GUARDED_BY(mutex_) = false;
  bool saving_ DTF_GUARDED_BY(mutex_) = false;   // claimed: one save at a time, of either thread
  bool started_ DTF_GUARDED_BY(mutex_) = false;  // it is thread_'s to do
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  TimePoint retry_at_ DTF_GUARDED_BY(mutex_);  // not before, after a failure
  Duration retry_pause_ DTF_GUARDED_BY(mutex_){};
  CheckpointStatus status_ DTF_GUARDED_BY(mutex_);
  Thread thread_;  // last
};

}  // namespace dtf::train
