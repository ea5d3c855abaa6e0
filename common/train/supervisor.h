#pragma once

// The chief's supervisor, as TensorFlow's: it restores or says that training starts anew, saves now
// and then beside the training, and at the end. Trouble with the disk never stops training: it is
// logged, retried, and logged once more at the end. Snapshots for which memory is too small are
// logged once, and given up.

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

// What is saved when, beside the end. A multiple of checkpoint.every_steps that comes while another
// save is under way is left out: the next save is of the next multiple.
struct SaveSchedule {
  std::optional<cluster::CheckpointSpec> checkpoint;  // none: no checkpoints
  uint64_t snapshot_every_steps = 0;                  // global steps; 0: no snapshots
};

// Finds each multiple of so many steps once.
class StepSchedule {
 public:
  explicit StepSchedule(uint64_t every) : every_(every) {}  // 0: never due
  // `next_step`: the first one that can still be had; `ahead`: how many steps that is from now.
  bool isDue(uint64_t next_step, uint64_t ahead);
  void restart() { next_ = 0; }  // the steps come again

 private:
  const uint64_t every_;
  uint64_t next_ = 0;  // 0: not known yet
};

// For the summary.
struct SnapshotStatus {
  std::optional<uint64_t> last_step;
  uint64_t kept = 0;
  uint64_t bytes = 0;        // of the last one, on all ps
  double longest_stall = 0;  // seconds
  std::string off;           // why no more are taken; empty: they are
};

// For status pages and the summary.
struct CheckpointStatus {
  std::optional<uint64_t> last_step;  // saved or restored
  uint64_t saved = 0;                 // checkpoints
  uint64_t failed = 0;                // attempts
  std::string degraded;               // why the last attempt failed; empty: it didn't
};

// Where saves and recoveries run beside the training, for those who have no threads to spare: a
// simulation.
class SaveRunner {
 public:
  virtual ~SaveRunner() = default;
  // Runs `save` soon, not from within start(); the one before has ended.
  virtual void start(std::function<void()> save) = 0;
  // Returns when no save runs.
  virtual void wait() = 0;
  // From within `save`.
  virtual void pause(Duration length) = 0;
};

// Owns: a thread that saves, unless it is given a runner.
// Borrows: `checkpointer`, `clock`, `runner`.
// Threads: onStep() and the rest from the training thread, status() from any.
// Blocks: onStep() a round trip to the ps when a checkpoint at a step is due, else never;
// saveAtRest() until a save under way is done; the destructor until one that is being written is,
// while one that still waits for its cut is called off.
class Supervisor {
 public:
  // On the supervisor's thread.
  struct Events {
    std::function<void(const SavedCheckpoint&)> on_saved{};
    // `checkpoint` has the parameters that are evaluated at `step`, see saveEvaluated(). It is
    // called before older checkpoints are removed the next time.
    std::function<void(uint64_t step, uint64_t checkpoint)> on_evaluated_saved{};
    std::function<void(const WentBack&)> on_went_back{};
    // A ps has lost its values, and they can't be had again: the job can't go on.
    std::function<void(const Error&)> on_hopeless{};
  };

  Supervisor(Checkpointer& checkpointer, const SaveSchedule& schedule, ps::CutKind cut_kind,
             const Clock& clock, Events events, SaveRunner* runner = nullptr);
  ~Supervisor();

  // After each answer of the ps. Starts a checkpoint or a snapshot when one is due; where both are,
  // a checkpoint, which is as good.
  void onStep(const ps::StepState& state);

  // A ps was started again, so it holds nothing: takes all of them back to the newest cut, as
  // soon as no save is under way, and again until it has succeeded. Any thread.
  void onPsReplaced() DTF_EXCLUDES(mutex_);

  // Before the parameters of `global_step`, which the last answer brought, are evaluated: saves
  // them beside the evaluation. Async: with what other workers push meanwhile. A failure is that of
  // any other checkpoint, and Events::on_evaluated_saved does not come. Blocks until a save or a
  // recovery under way is done.
  void saveEvaluated(uint64_t global_step);

  // When all workers are at rest: at the end, or because the job was asked to stop.
  // Errors: those of Checkpointer::save, when the last checkpoint can't be written: the caller
  // would lose work. status() says so too.
  // In a job without checkpoints: keeps a snapshot, if it can.
  void saveAtRest();

  // Never waits for a save.
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
  void saveOnce();
  void snapshotOnce(Motion motion);
  void snapshotAtRest();
  void snapshotFailed(const Error& error) DTF_EXCLUDES(mutex_);
  void recover();
  bool tryToRecover();
  uint64_t announcedAhead() const;  // steps
  bool isTime();
  Work claim(bool steps_due, bool snapshot_due, uint64_t global_step) DTF_EXCLUDES(mutex_);
  void start(Work work, uint64_t step);
  void succeeded(bool saved) DTF_EXCLUDES(mutex_);
  std::optional<uint64_t> takeEvaluatedOrEnd(bool saved) DTF_EXCLUDES(mutex_);
  void failed(const Error& error) DTF_EXCLUDES(mutex_);
  void countFailureAtRest(const Error& error) DTF_EXCLUDES(mutex_);

  Checkpointer& checkpointer_;
  const SaveSchedule schedule_;
  const ps::CutKind cut_kind_;
  const Clock& clock_;
  const Events events_;
  SaveRunner* const runner_;  // null: thread_ saves

  // Training thread:
  struct Saves {
    TimePoint next_time;
    StepSchedule steps;
    uint64_t announced = 0;  // the step of the last one, where cuts are at steps; else 0
  };
  Saves saves_;
  StepSchedule snapshot_steps_;

  // Held for a look or a note: never over a call of the checkpointer, the report or the log.
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t global_step_ DTF_GUARDED_BY(mutex_) = 0;  // the last that is known of
  bool replaced_ DTF_GUARDED_BY(mutex_) = false;     // a ps was, and nobody has recovered since
  // The save under way is of the parameters that are evaluated at this step.
  std::optional<uint64_t> evaluated_ DTF_GUARDED_BY(mutex_);
  // By time, and not claimed: a save runs, or one that failed waits for its retry.
  bool overdue_ DTF_GUARDED_BY(mutex_) = false;
  bool snapshot_overdue_ DTF_GUARDED_BY(mutex_) = false;  // ditto
  bool busy_ DTF_GUARDED_BY(mutex_) =
      false;  // claimed: one save or recovery at a time, of any thread
  Work due_ DTF_GUARDED_BY(mutex_) = Work::kNothing;  // it is thread_'s to do
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  TimePoint retry_at_ DTF_GUARDED_BY(mutex_);  // not before, after a failure
  Duration retry_pause_ DTF_GUARDED_BY(mutex_){};
  CheckpointStatus status_ DTF_GUARDED_BY(mutex_);
  SnapshotStatus snapshots_ DTF_GUARDED_BY(mutex_);
  Thread thread_;  // last
};

}  // namespace dtf::train
