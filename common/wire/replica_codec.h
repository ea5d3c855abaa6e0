#pragma once

// The state and the updates of a replica, to and from the schema.

#include "common/replication/replicator.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeReplicaState(const replication::ReplicaState& state,
                        schema::ReplicaState::Builder builder);
// Errors: kBadData for a state that no shard can have.
replication::ReplicaState decodeReplicaState(schema::ReplicaState::Reader reader);

// The fields of an update, without the values of its gradient.
void encodeReplicaUpdate(const replication::ReplicaUpdate& update,
                         schema::PsReplica::UpdateParams::Builder builder);
replication::ReplicaUpdate decodeReplicaUpdate(schema::PsReplica::UpdateParams::Reader reader);

}  // namespace dtf::wire
