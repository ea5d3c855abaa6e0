#include "common/train/chief_decision.h"

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::train {

namespace {

ps::EpochOrigin originOf(const checkpoint::HeldValues& values) {
  if (!values.restored) return ps::EpochOrigin::kInitialValues;
  return values.from_snapshot ? ps::EpochOrigin::kSnapshot : ps::EpochOrigin::kCheckpoint;
}

}  // namespace

std::vector<ps::PsWord> wordsOf(const std::vector<checkpoint::HeldValues>& held) {
  std::vector<ps::PsWord> words;
  for (const checkpoint::HeldValues& values : held) {
    ps::PsWord word;
    word.answered = true;
    word.epoch = values.epoch;
    word.step = values.updates;
    word.origin = originOf(values);
    word.origin_cut = {values.origin_epoch, values.origin_step};
    for (const checkpoint::SnapshotName& name : values.snapshots)
      word.snapshots.push_back({name.epoch, name.step});
    word.replica_epoch = values.replica_epoch;
    words.push_back(std::move(word));
  }
  return words;
}

ps::RecoveryDecision decideAsChief(const std::vector<checkpoint::HeldValues>& held,
                                   const ps::ChiefWord& chief) {
  DTF_CHECK(!held.empty());
  ps::RecoveryDecision decision = ps::decideRecovery(wordsOf(held), chief);
  if (decision.action == ps::RecoveryAction::kEnd)
    throw Error(ErrorCode::kBadData, decision.reason);
  DTF_CHECK(decision.action != ps::RecoveryAction::kWait);  // all have answered
  return decision;
}

}  // namespace dtf::train
