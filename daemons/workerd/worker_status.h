#pragma once

// What a worker's two threads know of each other: the main thread, which answers signals and status
// questions, and the training thread.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/train/step_times.h"
#include "common/train/supervisor.h"
#include "daemons/workerd/revocable.h"

namespace dtf::workerd {

//   phase      from                                  what a first signal means
//   starting   the start of the process              it ends at once: nothing is lost
//   training   all workers have met                  the job is asked to end, with a checkpoint
//              finishing, once a ps went back    and so is it for a signal that came before
//   finishing  the last step, or the job's failure   the job goes on to its end: it is saving
// Without checkpoints nothing can be saved, and it ends at once in every phase.
enum class WorkerPhase : uint8_t { kStarting, kTraining, kFinishing };

// Thread-safe.
// Blocks: askToEnd(), tellOthers() and askHeartbeats() for as long as the stopper, the teller and
// the asker do, the destructors of Training, Telling and Asking until those have returned; the rest
// never.
class WorkerStatus {
 public:
  using Refused = std::function<void(const Error& reason)>;  // on any thread, perhaps never
  // Asks for the end of the job. Does not wait for the answer.
  using Stopper = std::function<void(Refused refused)>;

  // The phase of training, for as long as this lives; then the worker is finishing. Once ended,
  // `stopper` is not called any more, nor being called. Null: the job keeps no checkpoints.
  class Training {
   public:
    Training(WorkerStatus& status, Stopper stopper);
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

   private:
    WorkerStatus& status_;
  };

  // Who to tell that a person has ended this worker, for as long as a Telling lives.
  using Teller = std::function<void(const Error& reason)>;
  class Telling {
   public:
    Telling(WorkerStatus& status, Teller teller);
    ~Telling();
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;

   private:
    WorkerStatus& status_;
  };
  void tellOthers(const Error& reason);

  // Runs a function on the loop of this worker's heartbeats.
  using Asker = std::function<void(std::function<void()> answer)>;
  class Asking {
   public:
    // Where `asker` reaches, for as long as this lives.
    Asking(WorkerStatus& status, Asker asker);
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    WorkerStatus& status_;
  };
  // Calls `answer` when the loop of the heartbeats has come to it, there; at once where there is
  // none.
  void askHeartbeats(std::function<void()> answer);

  // What this worker waits for, until it trains (on).
  void awaits(std::string what);
  void goesOn();
  // What it does, in a line.
  std::string text() const;
  // The chief has reported the result of the whole job: text() is resultStatus() from now on, and
  // the service manager has it at once.
  void hasResult();
  // Why it doesn't train, in a line; empty: it does, or has, and waits for nobody.
  std::string whyNotReady() const;

  // The first signal. True: the job saves what it has and ends by itself, unless `refused` is
  // called. False: nothing is lost by ending at once.
  bool askToEnd(Refused refused);

  WorkerPhase phase() const;

  // What this worker has done itself, and, of the chief, what is saved: as of the last report.
  struct Done {
    uint64_t batches = 0;
    uint64_t batches_stale = 0;
    uint64_t examples = 0;
    train::StepTimes step_times{};
    std::optional<train::CheckpointStatus> checkpoints{};  // none: it keeps none
  };
  void reports(const Done& done);
  Done done() const;

  // Of the last report of progress; 0: there was none.
  std::atomic<uint64_t> global_step{0};
  std::atomic<uint64_t> steps{0};  // that the job has
  std::atomic<float> loss{0};
  std::atomic<double> steps_per_second{0};
  std::atomic<double> examples_per_second{0};  // of the whole job

 private:
  mutable Mutex mutex_;
  WorkerPhase phase_ DTF_GUARDED_BY(mutex_) = WorkerPhase::kStarting;
  bool saves_ DTF_GUARDED_BY(mutex_) = false;
  Mutex asking_;  // orders who asks for the end, and who brings a stopper
  // Came when there was no stopper: asked by the next one.
  std::optional<Refused> unasked_ DTF_GUARDED_BY(asking_);
  Revocable<Refused> stopper_;
  Revocable<Error> teller_;
  Revocable<std::function<void()>> asker_;
  std::string awaited_ DTF_GUARDED_BY(mutex_);  // empty: nothing
  bool has_result_ DTF_GUARDED_BY(mutex_) = false;
  Done done_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::workerd
