#pragma once

// The traffic between a worker and one shard, from which the plan of their link follows.

#include <cstdint>
#include <vector>

#include "common/arena/codec.h"
#include "common/arena/gradient_layout.h"
#include "common/arena/model_declaration.h"
#include "common/arena/shard_codecs.h"
#include "common/exchange/transfer_plan.h"
#include "common/wire/ps/ps_link.h"

namespace dtf::wire {

struct ShardTraffic {
  exchange::JobTransfers job{};
  uint64_t elements = 0;
  std::vector<arena::SparseSlice> sparse{};  // of the shard
  arena::ShardRanges ranges{};               // for the job's codec

  arena::GradientLayout layout() const { return arena::GradientLayout(elements, sparse); }
  arena::ShardCodecs codecs() const { return {job.codec, elements, layout(), ranges}; }
};
// Returns the traffic of worker `rank` with the shard `ps_task`.
ShardTraffic trafficOf(const arena::ModelDeclaration& model, uint32_t rank, uint32_t ps_task);

// Returns the plan for `traffic` with the ps `peer`; by default one on another host.
exchange::TransferPlan planOf(const ShardTraffic& traffic, const LinkOptions& options,
                              const exchange::TransferPeer& peer = {});

}  // namespace dtf::wire
