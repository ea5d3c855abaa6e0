#pragma once

// The WorkerGate interface (common/wire/worker.capnp): what a workerd answers to people and tools.

#include "common/cluster/options.h"
#include "common/wire/worker.capnp.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// The bootstrap of one connection.
// Borrows: `task`, `status`.
// Threads: loop-thread only.
schema::WorkerGate::Client makeWorkerGate(const cluster::TaskOptions& task,
                                          const WorkerStatus& status);

}  // namespace dtf::workerd
