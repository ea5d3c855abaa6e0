#pragma once

// A point in a stream's work, for timing between two of them, or for ordering two streams.
// Internal, see cuda_error.h.

#include <cstdint>

#include "gpu/cuda_error.h"
#include "gpu/device.h"

namespace dtf::gpu {

// Owns the event. Threads: one at a time; others may call holdBack() and wait(). Blocks: wait().
// Errors: PluginError.
class Event {
 public:
  // kOrders yields the processor while a thread waits for it.
  enum class Use : uint8_t { kTimes, kOrders };
  explicit Event(Use use = Use::kTimes) {
    const unsigned flags =
        use == Use::kTimes ? cudaEventDefault : cudaEventDisableTiming | cudaEventBlockingSync;
    check(cudaEventCreateWithFlags(&event_, flags), "making an event");
  }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream stream) { check(cudaEventRecord(event_, stream), "marking work of a stream"); }
  // Makes later work of `stream` wait for it.
  void holdBack(Stream stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "ordering two streams");
  }
  void wait() const { check(cudaEventSynchronize(event_), "computing"); }
  // Both must be of kTimes, and have been reached.
  double secondsSince(const Event& earlier) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "timing the work of a GPU");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace dtf::gpu
