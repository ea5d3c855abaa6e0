#pragma once

// Lets another thread end what this one computes: between two kernels, those of loops and branches
// included.

#include <atomic>

namespace dtf::runtime {

// While it lives, Device::run() throws in its thread as soon as `stop` is true, and so does
// whatever runs steps. The innermost of a thread counts.
// Borrows: `stop`.
// Threads: belongs to the thread that makes it; others set `stop`.
class [[nodiscard]] StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  // Of this thread; nullptr: there is no scope.
  static const std::atomic<bool>* current();

 private:
  const std::atomic<bool>* before_;
};

// Errors: kUnavailable when `stop`, of StopScope::current(), says so.
void throwIfStopped(const std::atomic<bool>* stop);

}  // namespace dtf::runtime
