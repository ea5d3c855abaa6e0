#pragma once

// Ends the steps of this process that are late, or that their client aborts.

#include <cstdint>
#include <map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/engine/executor.h"

namespace dtf::engine {

// Owns: a thread.
// Threads: thread-safe.
// Blocks: the destructor, until an abort that has begun is made.
class StepWatch {
 public:
  StepWatch();
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

  // A step that is watched, until this ends.
  class [[nodiscard]] Watched {
   public:
    ~Watched() { watch_.forget(id_); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    friend class StepWatch;
    using Id = std::pair<TimePoint, uint64_t>;  // its deadline; in the order of the calls
    Watched(StepWatch& watch, Id id) : watch_(watch), id_(id) {}
    StepWatch& watch_;
    const Id id_;
  };

  // `step`: its number, for messages. `abort` may be called, in any thread, until the call of abortAll()
  // that does so has returned, or this is destroyed: so it does no harm when the step has ended.
  // noexcept, for the step runs already: a process without memory ends here.
  Watched watch(uint64_t step, Duration at_most, AbortStep abort) noexcept;

  // All that are watched now end for `cause`.
  void abortAll(const Error& cause);

 private:
  struct Step {
    uint64_t number = 0;
    Duration at_most{};
    AbortStep abort;
  };

  void forget(const Watched::Id& id);
  void work();

  Mutex mutex_;
  CondVar changed_;
  std::map<Watched::Id, Step> steps_
      DTF_GUARDED_BY(mutex_);  // the one that is late first comes first
  uint64_t last_ DTF_GUARDED_BY(mutex_) = 0;
  TimePoint wakes_ DTF_GUARDED_BY(mutex_) = TimePoint::max();  // the thread, without being told
  bool ending_ DTF_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the others
};

}  // namespace dtf::engine
