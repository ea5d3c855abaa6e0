#pragma once

// The PsReplica interface (common/wire/ps.capnp) over the replica that a ps keeps.

#include "common/arena/gradient_layout.h"
#include "common/base/ids.h"
#include "common/shard/shard.h"
#include "common/shard/shard_replica.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// Returns the interface for the process `primary` of `host`, which hosts the shard `ps_task` and
// was passed to ShardReplica::meet(). `layout`: of its gradients. `shard`: of this ps, with the
// model. `replica` and `shard` outlive the connection. Data loop only.
schema::PsReplica::Client makeReplica(shard::ShardReplica& replica, const shard::Shard& shard,
                                      wire::ConnectionRef connection, uint32_t ps_task, TaskId host,
                                      arena::GradientLayout layout, Incarnation primary,
                                      uint64_t chunk_bytes);

}  // namespace dtf::host
