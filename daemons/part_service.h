#pragma once

// The RPC interfaces of a task that serves (common/wire/parts.capnp).

#include "common/wire/parts.capnp.h"
#include "daemons/connection_set.h"

namespace dtf::daemons {

class PartServer;

// Returns the bootstrap of one connection.
// Borrows: `server`, which outlives its connections.
// Threads: loop-thread only.
schema::TaskGate::Client makeTaskGate(PartServer& server, ConnectionRef connection);

}  // namespace dtf::daemons
