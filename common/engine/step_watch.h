#pragma once

// Ends the steps of this process that are late, or that their client aborts.

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"

namespace dtf::engine {

// Owns: a thread.
// Threads: thread-safe.
// Blocks: the destructor, until a running abort is complete.
class StepWatch {
 public:
  StepWatch();
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  // A watched step, until this ends. Allocates nothing.
  // Blocks: the destructor, during an abort of it.
  class [[nodiscard]] Watched {
   public:
    // `abort(cause)`, borrowed, may be called in any thread, more than once, and after the end of
    // the step, when it must be harmless. It must not destroy this.
    template <class Abort>
    Watched(StepWatch& watch, uint64_t step, Duration at_most, Abort& abort)
        : Watched(watch, step, at_most, const_cast<void*>(static_cast<const void*>(&abort)),
                  [](void* to, const Error& cause) { (*static_cast<Abort*>(to))(cause); }) {}
    ~Watched();
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    friend class StepWatch;
    using Call = void (*)(void* abort, const Error& cause);
    Watched(StepWatch& watch, uint64_t step, Duration at_most, void* abort, Call call);

    StepWatch& watch_;
    const uint64_t step_;  // its number, for messages
    const Duration at_most_;
    const TimePoint deadline_;
    void* const abort_;
    const Call call_;
    bool is_late_ = false;
    Watched *before_ = nullptr,
            *after_ = nullptr;  // in the list; both belong to the watch, under its mutex
  };

  // Aborts all watched steps with `cause`.
  void abortAll(const Error& cause);

 private:
  void work();
  // Returns the first deadline of the steps that aren't late yet.
  TimePoint nextDeadline() const DTF_REQUIRES(mutex_);
  void abortLate() DTF_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  Watched* first_ DTF_GUARDED_BY(mutex_) = nullptr;
  // the thread's next wake-up by itself
  TimePoint wakes_ DTF_GUARDED_BY(mutex_) = TimePoint::max();
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the others
};

}  // namespace dtf::engine
