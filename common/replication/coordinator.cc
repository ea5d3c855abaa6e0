#include "common/replication/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/replication/async_coordinator.h"
#include "common/replication/membership.h"
#include "common/replication/replication_rules.h"
#include "common/replication/sync_coordinator.h"

namespace dtf::replication {

void StalenessHistogram::add(uint64_t staleness) {
  ++counts[std::min<uint64_t>(staleness, kBuckets - 1)];
  sum += staleness;
  max = std::max(max, staleness);
}

Error gaveWay(uint32_t rank, TaskId host) {
  return {ErrorCode::kUnavailable,
          fmt::format("{} asked {} again; this call gave way to the newer one", workerName(rank),
                      host.name())};
}

Error wentBackDuringCut(TaskId host) {
  return {ErrorCode::kUnavailable,
          host.name() + " went back to earlier values before the checkpoint was taken"};
}

std::unique_ptr<Coordinator> makeCoordinator(const CoordinatorContext& context) {
  if (sharesSteps(context.declaration.replication))
    return std::make_unique<SyncCoordinator>(context);
  return std::make_unique<AsyncCoordinator>(context);
}

}  // namespace dtf::replication
