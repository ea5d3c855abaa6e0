#pragma once

// The RPC interfaces of a task that serves (common/wire/parts.capnp).

#include "common/wire/connection_set.h"
#include "common/wire/parts.capnp.h"

namespace dtf::serving {

class PartServer;

// Returns the bootstrap of one connection.
// Borrows: `server`, which outlives its connections.
// Threads: loop-thread only.
schema::TaskGate::Client makeTaskGate(PartServer& server, wire::ConnectionRef connection);

}  // namespace dtf::serving
