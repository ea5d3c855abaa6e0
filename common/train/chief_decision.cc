#include "common/train/chief_decision.h"

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::train {

replication::RecoveryDecision decideAsChief(const std::vector<checkpoint::PsState>& held,
                                            const replication::ChiefState& chief) {
  DTF_CHECK(!held.empty());
  replication::RecoveryDecision decision = replication::decideRecovery(held, chief);
  if (decision.action == replication::RecoveryAction::kEnd)
    throw Error(ErrorCode::kBadData, decision.reason);
  DTF_CHECK(decision.action != replication::RecoveryAction::kWait);  // all have answered
  return decision;
}

}  // namespace dtf::train
