#pragma once

// What choosing the fastest of several ways needs. Internal, see cuda_error.h.

#include <algorithm>
#include <cstddef>

#include "gpu/device.h"
#include "gpu/event.h"

namespace dtf::gpu {

// How many ways are timed, and how often each.
inline constexpr size_t kTrialsMax = 8;
inline constexpr int kTimedRuns = 5;

// Memory of the device for as long as it lives.
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

// What the device takes for kTimedRuns of `run`, after one that loads its code. Blocks.
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
