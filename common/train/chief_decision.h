#pragma once

// The chief's decision at its start and after a ps was restarted: replication::decideRecovery() on
// the replies to CheckpointClient::held(). A restarted ps holds no values while the others hold
// trained ones. To train on would silently mix two histories of one model.

#include <vector>

#include "common/checkpoint/checkpoint_client.h"
#include "common/replication/job_recovery.h"

namespace dtf::train {

// Returns kStart, kContinue, kRefill or kGoBack.
// Errors: kBadData, naming the ps that lost their values, if no copy exists.
replication::RecoveryDecision decideAsChief(const std::vector<checkpoint::PsState>& held,
                                            const replication::ChiefState& chief);

}  // namespace dtf::train
