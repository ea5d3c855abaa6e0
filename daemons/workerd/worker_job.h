#pragma once

// What the training thread of a workerd does, from connecting to the last barrier.

#include <atomic>
#include <cstdint>

#include "common/cluster/options.h"

namespace dtf::workerd {

// How far a worker is, for its status page. Thread-safe.
struct WorkerStatus {
  std::atomic<uint64_t> global_step{0};
  std::atomic<float> loss{0};
  std::atomic<bool> training{false};
};

// Trains until the job is done: connects to every ps, declares the model, meets the other workers,
// steps, meets them again; the chief then evaluates and reports. Blocks all the while. `status` is
// kept up to date. Errors: those of the data, the model, the parameter client (a lost or missing
// task, named) and of the training.
void runWorkerJob(const cluster::TaskOptions& task, WorkerStatus& status);

}  // namespace dtf::workerd
