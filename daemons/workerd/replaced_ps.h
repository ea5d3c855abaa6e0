#pragma once

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/train/supervisor.h"

namespace dtf::workerd {

// Passes the loss of a ps, whose new process the chief has met, to the supervisor, which brings its
// values back. In a job that keeps no values a loss ends the job, once the ps hold some.
// Borrows: the supervisor.
// Threads: thread-safe.
class ReplacedPs {
 public:
  // Returns false if nothing can bring its values back.
  bool add() {
    const MutexLock lock(mutex_);
    is_any_ = true;
    if (supervisor_ != nullptr) supervisor_->onPsReplaced();
    return !is_final_;
  }

  // A job that keeps no values decides whether its ps hold them. Losses so far don't matter.
  void beginDecision() {
    const MutexLock lock(mutex_);
    is_any_ = false;
  }
  // They do. Returns false if a ps was lost since beginDecision(): decide once more.
  bool endDecision() {
    const MutexLock lock(mutex_);
    is_final_ = !is_any_;
    return is_final_;
  }

  // `supervisor` gets the losses from now on, also one that was before.
  void passTo(train::Supervisor& supervisor) {
    const MutexLock lock(mutex_);
    DTF_CHECK(supervisor_ == nullptr);
    supervisor_ = &supervisor;
    if (is_any_) supervisor.onPsReplaced();
  }
  void passToNobody() {
    const MutexLock lock(mutex_);
    supervisor_ = nullptr;
  }

 private:
  Mutex mutex_;
  train::Supervisor* supervisor_ DTF_GUARDED_BY(mutex_) = nullptr;
  bool is_any_ DTF_GUARDED_BY(mutex_) = false;
  bool is_final_ DTF_GUARDED_BY(mutex_) = false;
};

}  // namespace dtf::workerd
