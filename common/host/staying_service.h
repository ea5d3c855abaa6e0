#pragma once

// The PsStaying interface (common/wire/ps.capnp) over a shard and the shards that this ps keeps of
// checkpoints (common/checkpoint/staying_shards.h).

#include "common/host/shard_files.h"
#include "common/host/shard_host.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// Returns the interface for the chief's process `chief`.
// Borrows: `host`, `options` (must outlive it).
// Threads: control loop only. The disk loop of `host` reads and writes the files.
schema::PsStaying::Client makeStaying(ShardHost& host, const CheckpointOptions& options,
                                      Incarnation chief);

}  // namespace dtf::host
