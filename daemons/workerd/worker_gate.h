#pragma once

// The WorkerGate interface (common/wire/worker.capnp): a workerd's replies to people and tools.

#include "common/cluster/options.h"
#include "common/wire/worker.capnp.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// Returns the bootstrap of one connection. `metrics_address`: the worker's HTTP address; empty:
// none.
// Borrows: `task`, `status`.
// Threads: loop-thread only.
schema::WorkerGate::Client makeWorkerGate(const cluster::TaskOptions& task,
                                          const WorkerStatus& status,
                                          std::string metrics_address = {});

}  // namespace dtf::workerd
