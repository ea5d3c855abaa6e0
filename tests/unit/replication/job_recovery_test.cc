#include "common/replication/job_recovery.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtf::replication {
namespace {

// Epochs are written as their numbers.
constexpr uint64_t epochOf(uint64_t number) {
  return number << kEpochChiefBits;
}

constexpr uint64_t kIncarnation = 0x123456789a;

constexpr CutName kAt40{epochOf(1), 40};
constexpr CutName kAt60{epochOf(1), 60};

PsState empty() {
  return {};
}

PsState absent() {
  PsState state;
  state.absent = true;
  return state;
}

PsState holds(uint64_t epoch, uint64_t step) {
  PsState word = empty();
  word.epoch = epochOf(epoch);
  word.step = step;
  return word;
}

PsState wentBack(uint64_t epoch, EpochOrigin origin, CutName cut) {
  PsState word = holds(epoch, cut.step);
  word.origin = origin;
  word.origin_cut = cut;
  return word;
}

PsState with(PsState word, std::vector<CutName> snapshots) {
  word.snapshots = std::move(snapshots);
  return word;
}

RecoveryDecision decide(const std::vector<PsState>& words,
                        std::optional<CutName> checkpoint = std::nullopt) {
  return decideRecovery(words, {.checkpoint = checkpoint, .incarnation = kIncarnation});
}

TEST(JobRecovery, WaitsByNameForAPsThatIsAbsent) {
  const RecoveryDecision decision = decide({holds(1, 5), absent(), empty(), absent()}, kAt40);
  EXPECT_EQ(decision.action, RecoveryAction::kWait);
  EXPECT_EQ(decision.ps, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(decision.reason, "ps/1, ps/3 are absent");
}

TEST(JobRecovery, StartsOnlyWhenNobodyHoldsAnything) {
  const RecoveryDecision decision = decide({empty(), empty()});
  EXPECT_EQ(decision.action, RecoveryAction::kStart);
  EXPECT_EQ(decision.epoch, epochOf(1) | kIncarnation);
}

TEST(JobRecovery, InitialValuesThatHaveNotComeToAllAreSentAgain) {
  const RecoveryDecision decision = decide({holds(1, 0), empty()});
  EXPECT_EQ(decision.action, RecoveryAction::kStart);
  EXPECT_EQ(decision.epoch, epochOf(2) | kIncarnation) << "all begin anew";
  EXPECT_EQ(decide({holds(2, 0), holds(1, 0)}).action, RecoveryAction::kStart)
      << "one was lost meanwhile, too";
  EXPECT_EQ(decide({holds(2, 0), holds(1, 0)}).epoch, epochOf(3) | kIncarnation);
  EXPECT_EQ(decide({holds(1, 1), empty()}).action, RecoveryAction::kEnd) << "one has trained";
}

// A ps may have gone back as ordered, and been lost before its reply: the next try takes another
// name.
TEST(JobRecovery, AnEpochIsNamedOnce) {
  const ChiefState trained{kAt40, epochOf(1), 45, kIncarnation, epochOf(2) | kIncarnation};
  EXPECT_EQ(decideRecovery(std::vector<PsState>{empty()}, trained).epoch,
            epochOf(3) | kIncarnation);
  const ChiefState starting{.incarnation = kIncarnation, .named = epochOf(1) | kIncarnation};
  EXPECT_EQ(decideRecovery(std::vector<PsState>{empty()}, starting).epoch,
            epochOf(2) | kIncarnation);
}

TEST(JobRecovery, ANewChiefGoesOnWithWhatAllHold) {
  const RecoveryDecision decision = decide({holds(3, 70), holds(3, 71)}, kAt40);
  EXPECT_EQ(decision.action, RecoveryAction::kContinue);
  EXPECT_EQ(decision.epoch, epochOf(3));
}

TEST(JobRecovery, AJobThatEndedGoesOnFromItsCheckpoint) {
  const RecoveryDecision decision = decide({empty(), empty()}, CutName{epochOf(4), 90});
  EXPECT_EQ(decision.action, RecoveryAction::kGoBack);
  EXPECT_EQ(decision.origin, EpochOrigin::kCheckpoint);
  EXPECT_EQ(epochNumber(decision.epoch), 5u);
  EXPECT_EQ(decision.steps_lost, 0u);
  EXPECT_EQ(decision.reason, "no ps holds values: all take the checkpoint of step 90");
}

TEST(JobRecovery, AllGoBackToTheCheckpointWhenOneLostItsValues) {
  const RecoveryDecision decision = decide({holds(1, 77), empty()}, kAt40);
  EXPECT_EQ(decision.action, RecoveryAction::kGoBack);
  EXPECT_EQ(decision.cut, kAt40);
  EXPECT_EQ(decision.epoch, epochOf(2) | kIncarnation);
  EXPECT_EQ(decision.steps_lost, 37u);
  EXPECT_EQ(decision.reason,
            "ps/1 lost its values: all go back 37 steps to the checkpoint of step 40");
}

TEST(JobRecovery, EndsWhenOneLostItsValuesAndNothingHoldsThem) {
  const RecoveryDecision decision = decide({holds(1, 77), empty()});
  EXPECT_EQ(decision.action, RecoveryAction::kEnd);
  EXPECT_EQ(decision.ps, (std::vector<uint32_t>{1}));
  EXPECT_NE(decision.reason.find("ps/1 lost its values, and nothing holds them"),
            std::string::npos);
}

TEST(JobRecovery, AnEmptyPsIsFilledFromItsReplica) {
  PsState keeper = holds(2, 50);
  keeper.replica_epoch = epochOf(2);  // ps/0 holds a replica from ps/1's last epoch
  const RecoveryDecision decision = decide({keeper, empty()}, kAt40);
  EXPECT_EQ(decision.action, RecoveryAction::kRefill);
  EXPECT_EQ(decision.epoch, epochOf(2)) << "nothing was lost";
  EXPECT_EQ(decision.ps, (std::vector<uint32_t>{1}));
}

TEST(JobRecovery, AReplicaThatIsNotWholeOrOfAnotherEpochIsNone) {
  PsState keeper = holds(2, 50);
  EXPECT_EQ(decide({keeper, empty()}, kAt40).action, RecoveryAction::kGoBack);
  keeper.replica_epoch = epochOf(1);
  EXPECT_EQ(decide({keeper, empty()}, kAt40).action, RecoveryAction::kGoBack);
}

TEST(JobRecovery, PrimaryAndKeeperLostTogetherCostTheReplica) {
  PsState third = holds(1, 50);
  third.replica_epoch = epochOf(1);
  // ps/1's replica lies on ps/2, but ps/0's lay on ps/1.
  EXPECT_EQ(decide({empty(), empty(), third}, kAt40).action, RecoveryAction::kGoBack);
}

TEST(JobRecovery, TheNewestSnapshotThatAllHaveIsTaken) {
  const RecoveryDecision decision =
      decide({with(holds(1, 77), {kAt60, {epochOf(1), 70}}), with(empty(), {kAt60, kAt40})}, kAt40);
  EXPECT_EQ(decision.action, RecoveryAction::kGoBack);
  EXPECT_EQ(decision.origin, EpochOrigin::kSnapshot);
  EXPECT_EQ(decision.cut, kAt60);
  EXPECT_EQ(decision.steps_lost, 17u);
}

// All ps ended at once, perhaps with the chief. A job that ends well removes its snapshots.
TEST(JobRecovery, SnapshotsOfPsThatHoldNothingAreGoneOnFrom) {
  const std::vector<PsState> words{with(empty(), {kAt60}), with(empty(), {kAt60})};
  const RecoveryDecision decision = decideRecovery(words, {kAt40, epochOf(1), 77, kIncarnation});
  EXPECT_EQ(decision.origin, EpochOrigin::kSnapshot);
  EXPECT_EQ(decision.reason,
            "ps/0, ps/1 lost their values: all go back 17 steps to the snapshot of step 60");
  EXPECT_EQ(decide(words, kAt40).cut, kAt60);
  EXPECT_EQ(decide(words).reason, "no ps holds values: all take the snapshot of step 60");
}

// The chief and all ps were lost at once: the user passes the step that the job had reached.
struct LostWithTheChief {
  const char* name;
  std::vector<PsState> words;
  std::optional<CutName> checkpoint;
  std::optional<uint64_t> reached;
  RecoveryAction action;
  std::string reason;
};

TEST(JobRecovery, AJobThatWasLostWithItsChiefNeverBeginsAnewWithoutAWord) {
  using enum RecoveryAction;
  const LostWithTheChief cases[] = {
      {"nothing is left",
       {empty(), empty()},
       std::nullopt,
       77,
       kEnd,
       "ps/0, ps/1 lost their values, and nothing holds them; add `checkpoint:`"},
      {"no step was reported",
       {empty(), empty()},
       std::nullopt,
       0,
       kStart,
       "no ps holds values any more, and no step was reported"},
      {"its first process",
       {empty(), empty()},
       std::nullopt,
       std::nullopt,
       kStart,
       "no ps holds values, and there is no checkpoint"},
      {"a checkpoint",
       {empty(), empty()},
       kAt40,
       77,
       kGoBack,
       "ps/0, ps/1 lost their values: all go back 37 steps to the checkpoint of step 40"},
      {"a newer snapshot",
       {with(empty(), {kAt60}), with(empty(), {kAt60})},
       kAt40,
       77,
       kGoBack,
       "ps/0, ps/1 lost their values: all go back 17 steps to the snapshot of step 60"},
      {"a snapshot of one ps",
       {with(empty(), {kAt60}), empty()},
       std::nullopt,
       77,
       kEnd,
       "ps/0, ps/1 lost their values, and nothing holds them"},
      {"initial values on one ps",
       {holds(1, 0), empty()},
       std::nullopt,
       77,
       kEnd,
       "ps/1 lost its values, and nothing holds them"},
      {"values on all",
       {holds(1, 77), holds(1, 77)},
       std::nullopt,
       77,
       kContinue,
       "every ps holds its values"},
  };
  for (const LostWithTheChief& one : cases) {
    const RecoveryDecision decision = decideRecovery(
        one.words,
        {.checkpoint = one.checkpoint, .incarnation = kIncarnation, .reached = one.reached});
    EXPECT_EQ(decision.action, one.action) << one.name;
    EXPECT_EQ(decision.reason.substr(0, one.reason.size()), one.reason) << one.name;
  }
}

TEST(JobRecovery, ACheckpointThatIsNewerThanTheSnapshotsIsTaken) {
  const RecoveryDecision decision =
      decide({with(holds(1, 77), {kAt40}), with(empty(), {kAt40})}, kAt60);
  EXPECT_EQ(decision.origin, EpochOrigin::kCheckpoint);
  EXPECT_EQ(decision.cut, kAt60);
}

TEST(JobRecovery, AnInterruptedGoingBackIsDoneAgainToTheSameCut) {
  const PsState gone_back = wentBack(2, EpochOrigin::kSnapshot, kAt40);
  // A newer snapshot exists, too, but the first decision is carried out.
  const RecoveryDecision decision =
      decide({with(gone_back, {kAt40, kAt60}), with(holds(1, 77), {kAt40, kAt60})}, std::nullopt);
  EXPECT_EQ(decision.action, RecoveryAction::kGoBack);
  EXPECT_EQ(decision.cut, kAt40);
  EXPECT_EQ(epochNumber(decision.epoch), 3u);
  EXPECT_EQ(
      decision.reason,
      "a return to saved values was interrupted: all go back 37 steps to the snapshot of step 40");
}

TEST(JobRecovery, AnInterruptedGoingBackWhoseCutIsGoneTakesAnother) {
  const PsState gone_back = wentBack(2, EpochOrigin::kSnapshot, kAt60);
  const RecoveryDecision decision = decide({gone_back, holds(1, 77)}, kAt40);
  EXPECT_EQ(decision.origin, EpochOrigin::kCheckpoint);
  EXPECT_EQ(decision.cut, kAt40);
  EXPECT_EQ(decide({gone_back, holds(1, 77)}).action, RecoveryAction::kEnd);
}

TEST(JobRecovery, AChiefThatHasTrainedNeverStartsAnew) {
  const ChiefState trained{std::nullopt, epochOf(2), 70, kIncarnation};
  EXPECT_EQ(decideRecovery(std::vector{empty()}, trained).action, RecoveryAction::kEnd);
  EXPECT_EQ(decideRecovery(std::vector{holds(1, 0), empty()}, trained).action,
            RecoveryAction::kEnd);
  const ChiefState saved{kAt40, epochOf(2), 70, kIncarnation};
  const RecoveryDecision decision = decideRecovery(std::vector{empty()}, saved);
  EXPECT_EQ(decision.action, RecoveryAction::kGoBack);
  EXPECT_EQ(epochNumber(decision.epoch), 3u) << "what the workers hold is of epoch 2";
  EXPECT_EQ(decision.reason,
            "ps/0 lost its values: all go back 30 steps to the checkpoint of step 40");
}

TEST(JobRecovery, TwoChiefsThatKnowNothingOfEachOtherNameTwoEpochs) {
  const std::vector<PsState> words{empty(), holds(1, 70)};
  EXPECT_NE(decideRecovery(words, {kAt40, 0, 0, 1}).epoch,
            decideRecovery(words, {kAt40, 0, 0, 2}).epoch);
}

// ---- properties of every combination of words

struct World {
  std::vector<PsState> words;
  std::optional<CutName> checkpoint;
};

std::vector<PsState> everyWord() {
  std::vector<PsState> all = {absent()};
  for (const uint64_t epoch : {0, 1, 2}) {
    for (const uint64_t replica : {0, 1, 2}) {
      for (const bool snapshot : {false, true}) {
        PsState word = epoch == 2 ? wentBack(2, EpochOrigin::kSnapshot, kAt40) : holds(epoch, 50);
        word.replica_epoch = epoch == 0 ? 0 : epochOf(replica);
        if (snapshot) word.snapshots = {kAt40};
        all.push_back(word);
      }
    }
  }
  return all;
}

template <class Check>
void forEveryWorld(Check check) {
  const std::vector<PsState> each = everyWord();
  for (const PsState& first : each)
    for (const PsState& second : each)
      for (const PsState& third : each)
        for (const bool saved : {false, true})
          check(World{{first, second, third},
                      saved ? std::optional(CutName{epochOf(1), 30}) : std::nullopt});
}

TEST(JobRecovery, NeverStartsOverValuesNorContinuesWithoutThem) {
  size_t worlds = 0;
  forEveryWorld([&](const World& world) {
    const RecoveryDecision decision = decide(world.words, world.checkpoint);
    const bool all_answered = std::all_of(world.words.begin(), world.words.end(),
                                          [](const PsState& word) { return !word.absent; });
    ASSERT_EQ(decision.action == RecoveryAction::kWait, !all_answered);
    for (const PsState& word : world.words) {
      if (decision.action == RecoveryAction::kStart) {
        ASSERT_EQ(word.epoch, 0u);
      } else if (decision.action == RecoveryAction::kContinue) {
        ASSERT_EQ(word.epoch, decision.epoch);
      }
    }
    ASSERT_FALSE(decision.reason.empty());
    ++worlds;
  });
  EXPECT_EQ(worlds, 2u * 19 * 19 * 19);
}

TEST(JobRecovery, GoesBackOnlyToWhatAllCanHaveAndToANewEpoch) {
  size_t went_back = 0;
  forEveryWorld([&](const World& world) {
    const RecoveryDecision decision = decide(world.words, world.checkpoint);
    if (decision.action != RecoveryAction::kGoBack) return;
    ++went_back;
    for (const PsState& word : world.words) {
      ASSERT_GT(decision.epoch, word.epoch);
      if (decision.origin != EpochOrigin::kSnapshot) continue;
      ASSERT_EQ(std::count(word.snapshots.begin(), word.snapshots.end(), decision.cut), 1);
    }
    if (decision.origin == EpochOrigin::kCheckpoint) {
      ASSERT_EQ(decision.cut, world.checkpoint);
    }
  });
  EXPECT_GT(went_back, 1000u);
}

TEST(JobRecovery, RefillsOnlyFromAWholeReplicaOfTheSameEpoch) {
  size_t refilled = 0;
  forEveryWorld([&](const World& world) {
    const RecoveryDecision decision = decide(world.words, world.checkpoint);
    if (decision.action != RecoveryAction::kRefill) return;
    ++refilled;
    for (uint32_t i = 0; i < world.words.size(); ++i) {
      const bool refill = std::count(decision.ps.begin(), decision.ps.end(), i) == 1;
      ASSERT_EQ(world.words[i].epoch, refill ? 0 : decision.epoch);
      if (refill) {
        ASSERT_EQ(world.words[(i + 1) % 3].replica_epoch, decision.epoch);
      }
    }
  });
  EXPECT_GT(refilled, 10u);
}

}  // namespace
}  // namespace dtf::replication
