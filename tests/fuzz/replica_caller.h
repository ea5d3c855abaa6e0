#pragma once

// A ps as it speaks to the keeper of its replica (PsReplica).

#include <kj/async.h>

#include "common/net/rpc_connection.h"
#include "common/wire/ps.capnp.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

// Owns: the capability that the keeper, ps/`callee` of two, returned.
// Threads: one.
class ReplicaCaller {
 public:
  // Makes the call that `method` chooses, over a bulk connection. `epoch`: the epoch of most calls.
  kj::Promise<void> call(uint8_t method, Arguments& arguments, uint32_t callee, uint64_t epoch,
                         net::RpcConnection& connection);

 private:
  kj::Maybe<schema::PsReplica::Client> replica_;
};

}  // namespace dtf::fuzz
