#include "common/ps/coordinator.h"

#include <algorithm>
#include <string>

#include "common/ps/async_coordinator.h"
#include "common/ps/replication_rules.h"
#include "common/ps/sync_coordinator.h"

namespace dtf::ps {

void StalenessHistogram::add(uint64_t staleness) {
  ++counts[std::min<uint64_t>(staleness, kBuckets - 1)];
  sum += staleness;
  max = std::max(max, staleness);
}

Error wentBackDuringCut(uint32_t ps_task) {
  return {ErrorCode::kUnavailable,
          "ps/" + std::to_string(ps_task) +
              " went back to earlier values before the checkpoint was taken"};
}

std::unique_ptr<Coordinator> makeCoordinator(const CoordinatorContext& context) {
  if (sharesSteps(context.declaration.replication))
    return std::make_unique<SyncCoordinator>(context);
  return std::make_unique<AsyncCoordinator>(context);
}

}  // namespace dtf::ps
