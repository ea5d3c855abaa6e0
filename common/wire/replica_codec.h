#pragma once

// ps::ReplicaState and what an update is made of, to and from the schema.

#include "common/ps/replicator.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeReplicaState(const ps::ReplicaState& state, schema::ReplicaState::Builder builder);
// Errors: kBadData for what no shard is in.
ps::ReplicaState decodeReplicaState(schema::ReplicaState::Reader reader);

// All of an update but the values of its gradient.
void encodeReplicaUpdate(const ps::ReplicaUpdate& update,
                         schema::PsReplica::UpdateParams::Builder builder);
ps::ReplicaUpdate decodeReplicaUpdate(schema::PsReplica::UpdateParams::Reader reader);

}  // namespace dtf::wire
