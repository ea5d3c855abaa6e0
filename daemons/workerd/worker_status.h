#pragma once

// Shared state of a worker's two threads: the main thread, which handles signals and status
// queries, and the training thread.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/train/progress.h"
#include "common/train/supervisor.h"
#include "daemons/workerd/revocable.h"

namespace dtf::workerd {

// The phases of a worker:
//   phase      from                                  effect of the first signal
//   starting   the start of the process              it ends at once: nothing is lost
//   training   all workers have met                  requests the job's end, with a checkpoint
//              finishing, once a ps went back        also for an earlier signal
//   finishing  the last step, or the job's failure   the job goes on to its end: it is saving
// Without checkpoints nothing can be saved, and it ends at once in every phase.
enum class WorkerPhase : uint8_t { kStarting, kTraining, kFinishing };

// Thread-safe.
// Blocks: askToEnd(), tellOthers() and askHeartbeats() as long as the stopper, the teller and the
// asker do; the destructors of Training, Telling and Asking until those have returned; other calls
// never.
class WorkerStatus {
 public:
  using Refused = std::function<void(const Error& reason)>;  // on any thread, perhaps never
  // Requests the end of the job, without waiting for a reply.
  using Stopper = std::function<void(Refused refused)>;

  // The training phase lasts as long as this object; then the worker is finishing. After the
  // destructor `stopper` isn't called any more, and no call of it runs. Null: the job keeps no
  // checkpoints.
  class Training {
   public:
    Training(WorkerStatus& status, Stopper stopper);
    ~Training();
    Training(const Training&) = delete;
    Training& operator=(const Training&) = delete;

   private:
    WorkerStatus& status_;
  };

  // Notifies the job that a person has ended this worker, as long as a Telling lives.
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
    // Sets `asker` as long as this lives.
    Asking(WorkerStatus& status, Asker asker);
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    WorkerStatus& status_;
  };
  // Calls `answer` on the loop of the heartbeats when its turn comes; at once if there is no such
  // loop.
  void askHeartbeats(std::function<void()> answer);

  // Sets the text that this worker waits for, until goesOn().
  void awaits(std::string what);
  void goesOn();
  // Returns the state in one line.
  std::string text() const;
  // The chief has reported the result of the whole job: text() is resultStatus() from now on, and
  // the service manager has it at once.
  void hasResult();
  // Returns why it doesn't train, in one line; empty: it trains, or has trained, and waits for no
  // one.
  std::string whyNotReady() const;

  // The ps hold values that would be lost if the job ended now. Training begins soon, and the
  // requests of askToEnd() wait for it.
  void hasValues();

  // Handles the first signal. Returns true if the job saves its state and ends by itself, unless
  // `refused` is called; false if nothing is lost by ending at once.
  bool askToEnd(Refused refused);

  WorkerPhase phase() const;

  // This worker's own work and, for the chief, the saved checkpoints: as of the last report.
  struct Done {
    train::Progress progress{};
    std::optional<train::CheckpointStatus> checkpoints{};  // nullopt: the job keeps none
  };
  void reports(const Done& done);
  Done done() const;

  // From the last progress report; 0: none yet.
  std::atomic<uint64_t> global_step{0};
  std::atomic<uint64_t> steps{0};  // the job's
  std::atomic<float> loss{0};
  std::atomic<double> steps_per_second{0};
  std::atomic<double> examples_per_second{0};  // of the whole job
  std::atomic<bool> evaluates{false};

 private:
  mutable Mutex mutex_;
  WorkerPhase phase_ DTF_GUARDED_BY(mutex_) = WorkerPhase::kStarting;
  bool saves_ DTF_GUARDED_BY(mutex_) = false;
  Mutex asking_;  // orders requests for the end and new stoppers
  // A request that came without a stopper: passed to the next one.
  std::optional<Refused> unasked_ DTF_GUARDED_BY(asking_);
  Revocable<Refused> stopper_;
  Revocable<Error> teller_;
  Revocable<std::function<void()>> asker_;
  std::string awaited_ DTF_GUARDED_BY(mutex_);  // empty: nothing
  bool has_result_ DTF_GUARDED_BY(mutex_) = false;
  Done done_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::workerd
