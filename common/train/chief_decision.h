#pragma once

// What the chief does when it starts, and when a ps was started again, from what every ps says that
// it holds: ps::decideRecovery() on the words as they come over the wire. A ps that was started
// again holds nothing, while the others hold trained values: to train on would mix two histories of
// one model without a word.

#include <vector>

#include "common/checkpoint/checkpoint_client.h"
#include "common/ps/job_recovery.h"

namespace dtf::train {

// What the ps said, as the decision takes it. All have answered.
std::vector<ps::PsWord> wordsOf(const std::vector<checkpoint::HeldValues>& held);

// kStart, kContinue, kRefill or kGoBack.
// Errors: kBadData naming the ps that have lost their values, when nothing holds these.
ps::RecoveryDecision decideAsChief(const std::vector<checkpoint::HeldValues>& held,
                                   const ps::ChiefWord& chief);

}  // namespace dtf::train
