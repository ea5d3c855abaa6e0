#include "common/wire/ps/shard_traffic.h"

#include <algorithm>

namespace dtf::wire {

ShardTraffic trafficOf(const arena::ModelDeclaration& model, uint32_t rank, uint32_t ps_task) {
  const arena::CodecSpec codec = arena::codecOf(model.replication);
  ShardTraffic traffic{.job = exchange::transfersOf(model.replication, rank),
                       .elements = model.layout.shards.at(ps_task).elements,
                       .sparse = arena::sparseSlices(model.layout, ps_task),
                       .ranges = arena::rangesOf(codec, model.layout, ps_task)};
  traffic.job.has_tables =
      std::ranges::any_of(model.layout.variables, &arena::VariableInfo::is_sparse);
  return traffic;
}

exchange::TransferPlan planOf(const ShardTraffic& traffic, const LinkOptions& options,
                              const exchange::TransferPeer& peer) {
  return exchange::planTransfer(
      traffic.job,
      {.elements = traffic.elements,
       .encoded_bytes = traffic.codecs().encodedBytes(),
       .has_tables = !traffic.sparse.empty()},
      {options.share_from_bytes, options.stream_from_bytes,
       options.remote != nullptr ? cluster::Transport::kRdma : cluster::Transport::kTcp},
      peer);
}

}  // namespace dtf::wire
