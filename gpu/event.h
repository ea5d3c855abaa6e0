#pragma once

// A point in the work of a stream, to time what lies between two of them. Internal, see cuda_error.h.

#include "gpu/cuda_error.h"
#include "gpu/device.h"

namespace dtf::gpu {

// Owns the event. Errors: PluginError.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "making an event"); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream stream) {
    check(cudaEventRecord(event_, stream), "timing what a GPU computes");
  }
  // What `stream` is given from now on waits for it.
  void holdBack(Stream stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "ordering copies");
  }
  void wait() const { check(cudaEventSynchronize(event_), "computing"); }
  // Both must have been reached.
  double secondsSince(const Event& earlier) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_),
          "timing what a GPU computes");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace dtf::gpu
