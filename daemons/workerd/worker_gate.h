#pragma once

// The WorkerGate interface (common/wire/worker.capnp): what a workerd answers to people and tools.

#include "common/cluster/options.h"
#include "common/wire/worker.capnp.h"
#include "daemons/workerd/worker_status.h"

namespace dtf::workerd {

// The bootstrap of one connection.
// Borrows: `task`, `status`. `metrics_address`: where the worker answers over HTTP; empty: nowhere.
// Threads: loop-thread only.
schema::WorkerGate::Client makeWorkerGate(const cluster::TaskOptions& task,
                                          const WorkerStatus& status,
                                          std::string metrics_address = {});

}  // namespace dtf::workerd
