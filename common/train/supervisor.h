#pragma once

// The chief's supervisor, like TensorFlow's. It saves periodically beside the training and once at
// the end, and recovers the values of a restarted ps. A disk error never stops training: it is
// logged, and the save is retried. An error that would recur, such as too little memory, ends the
// snapshots and is logged once.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/replication/replication_rules.h"
#include "common/replication/step_state.h"
#include "common/train/checkpointer.h"

namespace dtf::train {

// How long the training thread waits for another thread's work.
struct SaveWaits {
  Duration save = std::chrono::minutes(10);     // for a save that is being written
  Duration recovery = std::chrono::minutes(1);  // for a lost ps
};

// When to save, beside the end of the job. A multiple of checkpoint.every_steps that comes while
// another save is under way is skipped.
struct SaveSchedule {
  std::optional<cluster::CheckpointSpec> checkpoint;  // none: no checkpoints
  uint64_t snapshot_every_steps = 0;                  // global steps; 0: no snapshots
  SaveWaits waits{};
};

// Reports each multiple of `every` steps once.
class StepSchedule {
 public:
  explicit StepSchedule(uint64_t every) : every_(every) {}  // 0: never due
  // `next_step`: the first step at which a cut is still possible. `ahead`: its distance from the
  // current step.
  bool isDue(uint64_t next_step, uint64_t ahead);
  void restart() { next_ = 0; }  // after going back: the steps come again

 private:
  const uint64_t every_;
  uint64_t next_ = 0;  // 0: not known yet
};

// Snapshots of this process, for the summary.
struct SnapshotStatus {
  std::optional<uint64_t> last_step;
  uint64_t kept = 0;
  uint64_t bytes = 0;        // of the last snapshot, on all ps
  double longest_stall = 0;  // seconds
  std::string off;           // why snapshots ended; empty: they go on
};

// Checkpoints of this process, for status pages and the summary.
struct CheckpointStatus {
  std::optional<uint64_t> last_step;  // saved or restored
  uint64_t saved = 0;                 // checkpoints
  uint64_t failed = 0;                // attempts
  std::string degraded;               // why the last attempt failed; empty: it didn't
};

// Runs saves and recoveries beside the training. The simulator implements it, as it has no threads.
class SaveRunner {
 public:
  virtual ~SaveRunner() = default;
  // Runs `save` soon, but not inside start(). The save before has ended.
  virtual void start(std::function<void()> save) = 0;
  // Blocks until no save runs.
  virtual void wait() = 0;
  // Sleeps; called inside `save`.
  virtual void pause(Duration length) = 0;
};

// Owns: a thread that saves, unless it has a runner.
// Borrows: `checkpointer`, `clock`, `runner`.
// Threads: onPsReplaced(), hasGoneBackBefore(), status() and snapshotStatus() from any, the rest
// from the training thread.
// Blocks: onStep() for a round trip to the ps if a cut at a step is due. saveEvaluated() and
// saveAtRest() until a save or a recovery under way is done, see SaveWaits. The destructor until a
// checkpoint being written is done; it calls off one that waits for its cut.
class Supervisor {
 public:
  // Called on the thread that saves.
  struct Events {
    std::function<void(const SavedCheckpoint&)> on_saved{};
    // `checkpoint` has the parameters that are evaluated at `step`, see saveEvaluated(). Called
    // before older checkpoints are removed the next time.
    std::function<void(uint64_t step, uint64_t checkpoint)> on_evaluated_saved{};
    std::function<void(const WentBack&)> on_went_back{};
    // A ps has lost its values and no copy exists: the job can't go on.
    std::function<void(const Error&)> on_hopeless{};
    // On the training thread, every few seconds that it waits: for what, and how long so far.
    std::function<void(const std::string& what, Duration waited)> on_waiting{};
  };

  Supervisor(Checkpointer& checkpointer, const SaveSchedule& schedule,
             replication::CutKind cut_kind, const Clock& clock, Events events,
             SaveRunner* runner = nullptr);
  ~Supervisor();

  // Called after each answer of the ps. Starts a checkpoint or a snapshot if one is due; if both
  // are, a checkpoint, which is as good.
  void onStep(const replication::StepState& state);

  // Called from any thread after a ps was restarted, which holds no values. Starts a recovery as
  // soon as no save is under way, and retries until it succeeds.
  void onPsReplaced() DTF_EXCLUDES(mutex_);

  // Called before the parameters of `global_step`, which the last answer brought, are evaluated.
  // Saves them beside the evaluation. In async mode, or with backup workers, the checkpoint is of a
  // later step, with later pushes of other workers. A failure is handled as for any checkpoint, and
  // Events::on_evaluated_saved does not come. Nor does it come if the wait for a save or a recovery
  // takes too long, or if the job went back meanwhile. The log has the reason.
  void saveEvaluated(uint64_t global_step);

  // Returns whether all ps went back to a step before `global_step`, and onStep() has had no answer
  // since: then the training thread has parameters that the job has lost.
  bool hasGoneBackBefore(uint64_t global_step) const;

  // Called when all workers are at rest: at the end, or after a stop request. A job without
  // checkpoints takes a snapshot, if possible.
  // Errors: as Checkpointer::save(), if the last checkpoint can't be written, and kDeadline if a
  // save or a recovery takes too long, as work would be lost; status() has it too.
  void saveAtRest();

  // Neither waits for a save.
  CheckpointStatus status() const;
  SnapshotStatus snapshotStatus() const;

 private:
  enum class Work : uint8_t { kNothing, kSave, kSnapshot, kRecover };

  void run();
  void run(Work work);
  void begin(Work work) DTF_EXCLUDES(mutex_);
  Work takeDue() DTF_EXCLUDES(mutex_);
  void beginDue() DTF_EXCLUDES(mutex_);
  void release() DTF_REQUIRES(mutex_);
  bool isLost() const DTF_REQUIRES(mutex_) { return loss_.replaced || loss_.recovering; }  // a ps
  void saveOnce();
  void snapshotOnce(Motion motion);
  void snapshotAtRest(const std::string& not_claimed);
  void snapshotFailed(const Error& error) DTF_EXCLUDES(mutex_);
  void recover();
  bool tryToRecover();
  void noteBack(const WentBack& back) DTF_EXCLUDES(mutex_);
  uint64_t announcedAhead() const;  // steps
  bool isTime();
  Work claim(bool steps_due, bool snapshot_due, const replication::StepState& state)
      DTF_EXCLUDES(mutex_);
  void start(Work work, uint64_t step);
  void succeeded(bool saved) DTF_EXCLUDES(mutex_);
  std::optional<uint64_t> takeEvaluatedOrEnd(bool saved) DTF_EXCLUDES(mutex_);
  void failed(const Error& error) DTF_EXCLUDES(mutex_);
  void countFailure(const Error& error) DTF_REQUIRES(mutex_);
  std::string claimWhenIdle(Duration recovery_max) DTF_EXCLUDES(mutex_);
  std::string claimForEvaluation(uint64_t global_step) DTF_EXCLUDES(mutex_);

  Checkpointer& checkpointer_;
  const SaveSchedule schedule_;
  const replication::CutKind cut_kind_;
  const Clock& clock_;
  const Events events_;
  SaveRunner* const runner_;  // null: thread_ saves

  // Used by the training thread alone:
  struct Saves {
    TimePoint next_time;
    StepSchedule steps;
    uint64_t announced = 0;  // step of the last save if cuts are at steps; else 0
    uint64_t epoch = 0;      // of the last answer
  };
  Saves saves_;
  StepSchedule snapshot_steps_;

  // Never held during a call of the checkpointer, an event or the log.
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t global_step_ DTF_GUARDED_BY(mutex_) = 0;  // the last known
  struct Loss {
    bool replaced = false;    // a ps was restarted and not recovered yet
    bool recovering = false;  // the work that is claimed is a recovery
    // Where recoveries took all that onStep() has not heard of yet. Epoch 0: there is none.
    uint64_t back_in_epoch = 0;
    uint64_t back_at = 0;
  };
  Loss loss_ DTF_GUARDED_BY(mutex_);
  // The save under way is for the evaluation at this step.
  std::optional<uint64_t> evaluated_ DTF_GUARDED_BY(mutex_);
  // A save is due by time and not claimed: another save runs, or waits for its retry.
  bool overdue_ DTF_GUARDED_BY(mutex_) = false;
  bool snapshot_overdue_ DTF_GUARDED_BY(mutex_) = false;  // a snapshot is due and not claimed
  bool busy_ DTF_GUARDED_BY(mutex_) = false;              // a save or recovery is claimed
  Work due_ DTF_GUARDED_BY(mutex_) = Work::kNothing;      // claimed for thread_
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  TimePoint retry_at_ DTF_GUARDED_BY(mutex_);  // earliest time of a retry
  Duration retry_pause_ DTF_GUARDED_BY(mutex_){};
  CheckpointStatus status_ DTF_GUARDED_BY(mutex_);
  SnapshotStatus snapshots_ DTF_GUARDED_BY(mutex_);
  Thread thread_;  // last
};

}  // namespace dtf::train
