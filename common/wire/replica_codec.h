#pragma once

// replication::ReplicaState and what an update is made of, to and from the schema.

#include "common/replication/replicator.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeReplicaState(const replication::ReplicaState& state,
                        schema::ReplicaState::Builder builder);
// Errors: kBadData for what no shard is in.
replication::ReplicaState decodeReplicaState(schema::ReplicaState::Reader reader);

// All of an update but the values of its gradient.
void encodeReplicaUpdate(const replication::ReplicaUpdate& update,
                         schema::PsReplica::UpdateParams::Builder builder);
replication::ReplicaUpdate decodeReplicaUpdate(schema::PsReplica::UpdateParams::Reader reader);

}  // namespace dtf::wire
