#pragma once

// What the training thread of a workerd does, from connecting to the last barrier.

#include <string>

#include "common/cluster/options.h"
#include "common/net/credentials.h"
#include "daemons/workerd/job_report.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

struct JobEnd {
  // Why it was stopped before its last step, without a checkpoint: what it has learned is lost.
  // "ps/1 was told to end". Empty: it is done.
  std::string stopped_as{};
  // It was stopped before its last step and saved, and is left to go on later (launch.on_sigterm).
  bool paused = false;
};

// Trains until the job is done: connects to every ps, declares the model, meets the other workers,
// steps, meets them again; the chief then saves, evaluates and gives `report` the result. Blocks
// all the while. `status` is kept up to date.
// Errors: those of the data, the model, the parameter client (a lost or missing task, named), of
// the training and of the last checkpoint.
JobEnd runWorkerJob(const cluster::TaskOptions& task, const net::Credentials& credentials,
                    WorkerStatus& status, JobReport& report);

}  // namespace dtf::workerd
