#pragma once

// The request to stop that ends a program's training, and the waits that it ends.

#include <atomic>
#include <memory>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace dtf::train {

// A request comes from outside (a signal, another thread), which wants the process to leave soon,
// or is the end of the run, after which nothing is in a hurry.
// Owns: the flags. Borrows: nothing.
// Threads: thread-safe; one Recovering at a time.
// Blocks: wait() alone.
class StopRequest {
 public:
  StopRequest() = default;
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  void ask();     // from outside
  void endRun();  // the run is finished
  bool isSet() const { return is_set_; }

  // Is true while a Recovering exists and ask() was called, also before it.
  std::shared_ptr<const std::atomic<bool>> givesUp() const { return gives_up_; }

  // Returns at `until`, or once a stop is requested.
  void wait(const Clock& clock, TimePoint until);

  // A wait for other tasks, of the thread that trains. Borrows: the request.
  // Threads: one. Blocks: never.
  class Recovering {
   public:
    explicit Recovering(StopRequest& stop);
    ~Recovering();
    Recovering(const Recovering&) = delete;
    Recovering& operator=(const Recovering&) = delete;

   private:
    StopRequest& stop_;
  };

 private:
  std::atomic<bool> is_set_ = false;
  const std::shared_ptr<std::atomic<bool>> gives_up_ = std::make_shared<std::atomic<bool>>(false);
  Mutex mutex_;
  CondVar changed_;
  bool is_asked_ DTF_GUARDED_BY(mutex_) = false;
  bool is_recovering_ DTF_GUARDED_BY(mutex_) = false;
};

}  // namespace dtf::train
