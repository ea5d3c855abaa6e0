#pragma once

// Values that the chief computes from the state of its ps.

#include <cstddef>
#include <cstdint>

#include "common/arena/parameter_layout.h"
#include "common/base/error.h"
#include "common/cluster/spec.h"
#include "common/exchange/exchange_client.h"
#include "common/train/training_loop.h"

namespace dtf::workerd {

// Returns the error that ends a job without supervision when `ps_task` holds no values: there is no
// other copy of them.
Error lostForGood(const cluster::ClusterSpec& cluster, uint32_t ps_task);

// Returns `error`, with how far the training is whose last checkpoint could not be written for it.
Error unsavedError(const train::TrainingResult& result, const Error& error);

// The digest of the parameters that the last pull() brought, sparse ones whole.
// Blocks, errors: as ExchangeClient::pull().
uint64_t digestOf(const arena::ParameterLayout& layout, exchange::ExchangeClient& client);

}  // namespace dtf::workerd
