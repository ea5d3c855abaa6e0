#pragma once

// The work of a workerd's training thread, from connecting to the last barrier.

#include <string>

#include "common/cluster/options.h"
#include "common/net/credentials.h"
#include "daemons/workerd/job_report.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

struct JobEnd {
  // Why it was stopped before its last step without a checkpoint, so that its training is lost:
  // `ps/1 was told to end`. Empty: it is done.
  std::string stopped_as{};
  // It was stopped before its last step and saved, to be continued later (launch.on_sigterm).
  bool paused = false;
};

// Trains until the job is done: connects to every ps, declares the model, meets the other workers,
// steps, meets them again. The chief then saves, evaluates and gives `report` the result. Keeps
// `status` up to date. Blocks until the end.
// Errors: of the data, the model, the exchange client (a lost or missing task, named), the
// training and the last checkpoint.
JobEnd runWorkerJob(const cluster::TaskOptions& task, const net::Credentials& credentials,
                    WorkerStatus& status, JobReport& report);

}  // namespace dtf::workerd
