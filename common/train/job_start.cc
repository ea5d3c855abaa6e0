#include "common/train/job_start.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/ps/job_recovery.h"

namespace dtf::train {

namespace {

// No ps goes back while it runs, so there is one epoch.
constexpr uint64_t kEpoch = 1;

std::vector<ps::PsWord> wordsOf(const std::vector<checkpoint::HeldValues>& held) {
  std::vector<ps::PsWord> words;
  for (const checkpoint::HeldValues& values : held) {
    ps::PsWord word;
    word.answered = true;
    word.epoch = values.any ? kEpoch : 0;
    word.step = values.updates;
    words.push_back(word);
  }
  return words;
}

// A restoring that was interrupted is done again: who holds values took them from that checkpoint.
bool areOfCheckpoint(const std::vector<checkpoint::HeldValues>& held, uint64_t step) {
  return std::all_of(held.begin(), held.end(), [&](const checkpoint::HeldValues& values) {
    return !values.any || values.updates == step;
  });
}

}  // namespace

JobStart decideStart(const std::vector<checkpoint::HeldValues>& held,
                     std::optional<uint64_t> checkpoint_step) {
  DTF_CHECK(!held.empty());
  std::optional<ps::CutName> checkpoint;
  if (checkpoint_step) checkpoint = ps::CutName{kEpoch, *checkpoint_step};
  const ps::RecoveryDecision decision = ps::decideRecovery(wordsOf(held), checkpoint);
  switch (decision.action) {
    case ps::RecoveryAction::kStart:
      return JobStart::kInitialise;
    case ps::RecoveryAction::kContinue:
      return JobStart::kContinue;
    case ps::RecoveryAction::kGoBack:
      if (areOfCheckpoint(held, *checkpoint_step)) return JobStart::kRestore;
      throw Error(ErrorCode::kBadData,
                  decision.reason +
                      ". A ps that holds values can't go back while it runs: end all tasks, and "
                      "start them again; the job goes on from that checkpoint");
    case ps::RecoveryAction::kEnd:
      throw Error(ErrorCode::kBadData, decision.reason);
    case ps::RecoveryAction::kWait:
    case ps::RecoveryAction::kRefill:
      break;
  }
  throw Error(ErrorCode::kInternal, "a job can't start so: " + decision.reason);
}

}  // namespace dtf::train
