#pragma once

// The PsCheckpoint interface (common/wire/ps.capnp) over a shard and the run directory's
// checkpoints.

#include <vector>

#include "common/host/shard_files.h"
#include "common/host/shard_host.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// Returns the names of the snapshots that this ps can load. The list is empty if the ps keeps none,
// or can't read them (logged).
// Blocks: while it reads the manifests.
std::vector<checkpoint::CutName> listSnapshots(const CheckpointOptions& options);

// Removes the snapshots of this ps, after a job that has ended well. Errors are only logged.
// Blocks: while the memory is freed.
void forgetSnapshots(const CheckpointOptions& options);

// Returns the interface for the chief's process `chief`.
// Borrows: `host`, `options` (must outlive it).
// Threads: control loop only. The disk loop of `host` reads and writes the files.
schema::PsCheckpoint::Client makeCheckpoint(ShardHost& host, const CheckpointOptions& options,
                                            Incarnation chief);

}  // namespace dtf::host
