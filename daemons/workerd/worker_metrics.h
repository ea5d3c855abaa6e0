#pragma once

// A worker's status for people, a service manager and Prometheus.

#include "daemons/service_watch.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// A worker is ready once all workers have met, while it waits for no ps and no other worker.
daemons::ServiceLook lookOf(const WorkerStatus& status);

}  // namespace dtf::workerd
