#pragma once

// The bulk half of ps_service.h: parameters out, gradients in.

#include <memory>

#include "common/base/ids.h"
#include "common/exchange/transfer_plan.h"
#include "common/host/lent_memory.h"
#include "common/host/ps_service.h"
#include "common/host/shard_host.h"
#include "common/wire/connection_set.h"
#include "common/wire/ps.capnp.h"

namespace dtf::host {

// The worker of a session, and the memory that is lent to it over all its connections.
struct DataCaller {
  uint32_t rank = 0;
  Incarnation incarnation;
  std::shared_ptr<LentMemory> lent;  // never null
};

// Returns the session of a worker that has declared the model. `host` and `options` outlive it.
// Data loop only.
schema::PsData::Client makeDataSession(ShardHost& host, const ServiceOptions& options,
                                       wire::ConnectionRef connection, exchange::TransferPlan plan,
                                       DataCaller caller);

}  // namespace dtf::host
