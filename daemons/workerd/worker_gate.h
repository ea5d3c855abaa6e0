#pragma once

// The WorkerGate interface (common/wire/worker.capnp): a workerd's replies to people and tools.

#include "common/cluster/options.h"
#include "common/wire/connection_set.h"
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

// Returns the same for a worker that hosts a shard: `shard` answers the calls of its PsGate. The
// worker's status has the fields of `own`, and those of the shard's that `own` lacks: the states of
// the workers, the awaited ones, and the counts of gradients.
schema::HostingWorkerGate::Client makeHostingGate(schema::PsGate::Client shard,
                                                  schema::WorkerGate::Client own,
                                                  wire::ConnectionRef connection);

}  // namespace dtf::workerd
