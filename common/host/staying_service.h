#pragma once

// The PsStaying interface (common/wire/ps.capnp) over a shard and the shards that this ps keeps of
// checkpoints (common/checkpoint/staying_shards.h).

#include "common/host/shard_files.h"
#include "common/host/shard_host.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// For the chief's process `chief`. Control loop only; disk work is done on the host's disk thread.
// Borrows: `host`, `options`.
schema::PsStaying::Client makeStaying(ShardHost& host, const CheckpointOptions& options,
                                      Incarnation chief);

}  // namespace dtf::host
