#pragma once

// How much memory something may take, and how much it has taken.

#include <cstdint>
#include <string>

#include "common/base/mutex.h"

namespace dtf::engine {

// Threads: thread-safe.
// Blocks: never.
class ByteBudget {
 public:
  explicit ByteBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // All or nothing. Errors: kUnavailable that says what `what` takes, and how much there is.
  void take(uint64_t bytes, const std::string& what) DTF_EXCLUDES(mutex_);
  void giveBack(uint64_t bytes) DTF_EXCLUDES(mutex_);
  uint64_t taken() const DTF_EXCLUDES(mutex_);

 private:
  const uint64_t bytes_max_;
  mutable Mutex mutex_;
  uint64_t taken_ DTF_GUARDED_BY(mutex_) = 0;
};

}  // namespace dtf::engine
