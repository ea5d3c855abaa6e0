#pragma once

// What a worker says of itself to those who watch over it: people, a service manager, Prometheus.

#include "daemons/service_watch.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// A worker is ready once all workers have met, and then while it waits for no ps and no other
// worker.
daemons::ServiceLook lookOf(const WorkerStatus& status);

}  // namespace dtf::workerd
