#pragma once

// The PsCheckpoint interface (common/wire/ps.capnp) over a shard and the run directory's
// checkpoints.

#include <vector>

#include "common/host/shard_files.h"
#include "common/host/shard_host.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// The snapshots that this ps can load; none where it keeps none, or can't read them (logged).
// Blocks: on reading what says how far each is.
std::vector<checkpoint::CutName> listSnapshots(const CheckpointOptions& options);

// Removes them: the job has ended well.
// Blocks: until the memory is free.
void forgetSnapshots(const CheckpointOptions& options);

// For the chief's process `chief`. Control loop only; disk work is done on the host's disk thread.
// Borrows: `host`, `options`.
schema::PsCheckpoint::Client makeCheckpoint(ShardHost& host, const CheckpointOptions& options,
                                            Incarnation chief);

}  // namespace dtf::host
