#pragma once

// PsReplica (common/wire/ps.capnp) over the replica that a ps keeps.

#include "common/base/ids.h"
#include "common/ps/gradient_layout.h"
#include "common/ps/shard.h"
#include "common/ps/shard_replica.h"
#include "common/wire/ps.capnp.h"
#include "daemons/connection_set.h"

namespace dtf::psd {

// For the process `primary` of ps/`ps_task`, which was met; `layout`: of its gradients. `shard`,
// this ps's own, knows the model.
// `replica` and `shard` outlive the connection. Data loop only.
schema::PsReplica::Client makeReplica(ps::ShardReplica& replica, const ps::Shard& shard,
                                      daemons::ConnectionRef connection, uint32_t ps_task,
                                      ps::GradientLayout layout, Incarnation primary,
                                      uint64_t chunk_bytes);

}  // namespace dtf::psd
