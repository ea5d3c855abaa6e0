#pragma once

// What the training thread of a workerd does, from connecting to the last barrier.

#include <atomic>
#include <cstdint>
#include <functional>

#include "common/base/mutex.h"
#include "common/cluster/options.h"

namespace dtf::workerd {

// How far a worker is, for its status page, and how its main thread asks it to stop. Thread-safe.
struct WorkerStatus {
  std::atomic<uint64_t> global_step{0};
  std::atomic<float> loss{0};
  std::atomic<bool> training{false};

  // Asks the job to end after the steps under way, with a checkpoint. False: it can't be asked (it
  // doesn't train yet, or any more, or keeps no checkpoints): nothing is lost by ending at once.
  bool requestStop();
  void setStopper(std::function<void()> stopper);  // null: from now on it can't be asked

 private:
  Mutex mutex_;
  std::function<void()> stopper_ DTF_GUARDED_BY(mutex_);
};

// Trains until the job is done: connects to every ps, declares the model, meets the other workers,
// steps, meets them again; the chief then evaluates and reports. Blocks all the while. `status` is
// kept up to date. Errors: those of the data, the model, the parameter client (a lost or missing
// task, named) and of the training.
void runWorkerJob(const cluster::TaskOptions& task, WorkerStatus& status);

}  // namespace dtf::workerd
