#pragma once

// Lets another thread end the computation of this one: between two kernels, including kernels in
// loops and branches.

#include <atomic>

namespace dtf::runtime {

// While it lives, Device::run() and other code that runs steps throw in its thread once `stop` is
// true. Only the innermost scope of a thread counts.
// Borrows: `stop`.
// Threads: belongs to the thread that makes it; others set `stop`.
class [[nodiscard]] StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  // Returns the scope's flag of this thread; nullptr without a scope.
  static const std::atomic<bool>* current();

 private:
  const std::atomic<bool>* before_;
};

// Errors: kUnavailable if `stop`, from StopScope::current(), is true.
void throwIfStopped(const std::atomic<bool>* stop);

}  // namespace dtf::runtime
