#pragma once

// What the training thread of a workerd does, from connecting to the last barrier.

#include "common/cluster/options.h"
#include "daemons/workerd/job_report.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

enum class JobEnd : uint8_t {
  kDone = 1,
  // It was asked to stop before its last step, and keeps no checkpoints: what it has learned is lost.
  kStoppedUnsaved = 2,
};

// Trains until the job is done: connects to every ps, declares the model, meets the other workers,
// steps, meets them again; the chief then saves, evaluates and gives `report` the result. Blocks
// all the while. `status` is kept up to date.
// Errors: those of the data, the model, the parameter client (a lost or missing task, named), of
// the training and of the last checkpoint.
JobEnd runWorkerJob(const cluster::TaskOptions& task, WorkerStatus& status, JobReport& report);

}  // namespace dtf::workerd
