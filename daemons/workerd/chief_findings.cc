#include "daemons/workerd/chief_findings.h"

#include <fmt/format.h>

#include <vector>

#include "common/arena/parameter_digest.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/train/chief_decision.h"

namespace dtf::workerd {

Error lostForGood(const cluster::ClusterSpec& cluster, uint32_t ps_task) {
  const ShardHosts hosts = cluster.shardHosts();
  std::vector<checkpoint::PsState> held(hosts.size(), {{replication::kFirstEpoch}});
  held.at(ps_task) = {};
  try {
    train::decideAsChief(held, {.epoch = replication::kFirstEpoch, .hosts = hosts});
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::kInternal, "a ps without its values was treated as if it held them"};
}

Error unsavedError(const train::TrainingResult& result, const Error& error) {
  const std::string reached =
      result.stopped ? fmt::format("the job was stopped at step {}", result.global_step)
                     : "training is done";
  return {error.code(), fmt::format("{}, but its last checkpoint could not be written: {}", reached,
                                    error.message())};
}

uint64_t digestOf(const arena::ParameterLayout& layout, exchange::ExchangeClient& client) {
  client.pull(exchange::Values::kWhole);
  return arena::parameterDigest(
      layout, [&](uint32_t ps) { return client.view(exchange::Values::kWhole, ps); });
}

}  // namespace dtf::workerd
