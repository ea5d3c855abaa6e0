#pragma once

// Helpers to choose the fastest of several ways. Internal, see cuda_error.h.

#include <algorithm>
#include <cstddef>

#include "gpu/device.h"
#include "gpu/event.h"

namespace dtf::gpu {

// The number of ways that are timed, and of runs for each.
inline constexpr size_t kTrialsMax = 8;
inline constexpr int kTimedRuns = 5;

// Device memory for the life of the object.
class Scratch {
 public:
  Scratch(Device& device, size_t bytes)
      : device_(device), memory_(device.allocate(std::max<size_t>(bytes, 1))) {}
  ~Scratch() { device_.deallocate(memory_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* get() const { return memory_; }

 private:
  Device& device_;
  std::byte* const memory_;
};

// Returns the device's time for kTimedRuns of `run`, after one that loads its code. Blocks.
template <class F>
double timedRuns(Device& device, const F& run) {
  run();
  Event begin, end;
  begin.record(device.stream());
  for (int i = 0; i < kTimedRuns; ++i) run();
  end.record(device.stream());
  end.wait();
  return end.secondsSince(begin);
}

}  // namespace dtf::gpu
