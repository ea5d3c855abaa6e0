#include "common/exchange/step_agreement.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/replication/epoch.h"

namespace dtf::exchange {
namespace {

constexpr cluster::ReplicationSpec kSync{cluster::ReplicationSpec::Mode::kSync, 3, 3};
constexpr cluster::ReplicationSpec kAsyncMode{};
using Asked = std::vector<std::optional<uint64_t>>;

replication::StepState at(uint64_t step, uint32_t batch = 0) {
  replication::StepState state;
  state.global_step = state.next_step = step;
  state.next_batch = batch;
  return state;
}

TEST(StepAgreement, AsyncFollowsTheFirstPs) {
  const Agreement agreement = agree(kAsyncMode, std::vector{at(5), at(9)}, Asked(2));
  EXPECT_TRUE(agreement.again.empty());
  EXPECT_EQ(agreement.state.next_step, 5u);
}

replication::StepState atProgress(uint64_t progress, bool done = false) {
  replication::StepState state = at(0);
  state.progress = progress;
  state.done = done;
  return state;
}

TEST(StepAgreement, BoundedThePsHearFromTheWorkerHowFarItIs) {
  const cluster::ReplicationSpec bounded{.mode = cluster::ReplicationSpec::Mode::kBounded};
  EXPECT_TRUE(agree(bounded, std::vector{atProgress(7), atProgress(7)}, Asked(2)).again.empty());
  const Agreement agreement =
      agree(bounded, std::vector{atProgress(7), atProgress(7), atProgress(0)}, Asked(3));
  ASSERT_EQ(agreement.again.size(), 1u);
  EXPECT_EQ(agreement.again[0].ps_task, 2u);
  EXPECT_EQ(agreement.again[0].wanted, replication::Wanted{.progress = 7});
  const Agreement end =
      agree(bounded,
            std::vector{atProgress(7, true), atProgress(7), atProgress(replication::kProgressEnd)},
            Asked(3));
  ASSERT_EQ(end.again.size(), 1u);
  EXPECT_EQ(end.again[0].ps_task, 1u);
  EXPECT_EQ(end.again[0].wanted, replication::Wanted{.progress = replication::kProgressEnd});
  const Agreement unasked = agree(bounded, std::vector{atProgress(0), atProgress(7)}, Asked(2));
  ASSERT_EQ(unasked.again.size(), 1u);
  EXPECT_EQ(unasked.again[0].ps_task, 0u);
  EXPECT_EQ(unasked.again[0].wanted, replication::Wanted{});
}

TEST(StepAgreement, TheEarliestMissingBatchIsNext) {
  const Agreement agreement = agree(kSync, std::vector{at(5, 2), at(5, 1)}, Asked(2));
  EXPECT_TRUE(agreement.again.empty());
  EXPECT_EQ(agreement.state.next_batch, 1u);
}

TEST(StepAgreement, ThoseAheadAreAskedForTheStepBefore) {
  const Agreement agreement = agree(kSync, std::vector{at(6), at(5), at(6)}, Asked(3));
  ASSERT_EQ(agreement.again.size(), 2u);
  EXPECT_EQ(agreement.again[0].ps_task, 0u);
  EXPECT_EQ(agreement.again[0].wanted.step, 5u);
  EXPECT_EQ(agreement.again[1].ps_task, 2u);
}

TEST(StepAgreement, WhereTheStepBeforeIsGoneTheOthersAreAskedAgain) {
  const Agreement agreement = agree(kSync, std::vector{at(6), at(5)}, Asked{5, std::nullopt});
  ASSERT_EQ(agreement.again.size(), 1u);
  EXPECT_EQ(agreement.again[0].ps_task, 1u);
  EXPECT_EQ(agreement.again[0].wanted.step, std::nullopt);
}

TEST(Settlement, AsksAgainUntilAllNameTheSameStep) {
  Settlement settlement(kSync, 2, "worker/1");
  settlement.start();
  settlement.answered(0, at(6));
  settlement.answered(1, at(5));
  std::vector<Agreement::Pull> pulls = settlement.again();
  ASSERT_EQ(pulls.size(), 1u);
  EXPECT_EQ(pulls[0].ps_task, 0u);
  EXPECT_EQ(pulls[0].wanted.step, 5u);
  settlement.answered(0, at(6));  // gone, so ps/1 has caught up
  pulls = settlement.again();
  ASSERT_EQ(pulls.size(), 1u);
  EXPECT_EQ(pulls[0].ps_task, 1u);
  EXPECT_EQ(pulls[0].wanted.step, std::nullopt);
  settlement.answered(1, at(6));
  EXPECT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().next_step, 6u);
}

constexpr uint64_t kFirstEpochNamed = replication::nextEpoch(0, 11);
constexpr uint64_t kSecondEpochNamed = replication::nextEpoch(kFirstEpochNamed, 22);

replication::StepState on(uint64_t epoch, uint64_t step,
                          replication::Outcome outcome = replication::Outcome::kApplied) {
  replication::StepState state = at(step);
  state.epoch = epoch;
  state.outcome = outcome;
  return state;
}

TEST(StepAgreement, ThosePsThatHaveNotGoneBackYetAreAskedForTheEpochOfTheOthers) {
  for (const auto& mode : {kSync, kAsyncMode}) {
    const Agreement agreement = agree(
        mode,
        std::vector{on(kSecondEpochNamed, 2), on(kFirstEpochNamed, 5), on(kSecondEpochNamed, 3)},
        Asked(3));
    EXPECT_EQ(agreement.again, (std::vector<Agreement::Pull>{{1, {}, kSecondEpochNamed}}));
  }
}

TEST(StepAgreement, AnEpochOfAHigherNumberIsTheLaterOneWhateverItsOtherBits) {
  const uint64_t later = replication::nextEpoch(kSecondEpochNamed, 0);
  const Agreement agreement =
      agree(kSync, std::vector{on(kSecondEpochNamed, 2), on(later, 2)}, Asked(2));
  EXPECT_EQ(agreement.again, (std::vector<Agreement::Pull>{{0, {}, later}}));
}

// Two chiefs named an epoch without seeing each other: neither epoch goes on.
TEST(StepAgreement, OfTwoEpochsOfOneNumberNeitherIsAskedFor) {
  const uint64_t rival = replication::nextEpoch(kFirstEpochNamed, 33);
  const Agreement agreement =
      agree(kAsyncMode, std::vector{on(kSecondEpochNamed, 2), on(rival, 2)}, Asked(2));
  ASSERT_EQ(agreement.again.size(), 2u);
  for (const Agreement::Pull& pull : agreement.again)
    EXPECT_EQ(replication::epochNumber(pull.epoch), 3u);
}

TEST(StepAgreement, TheStepBeforeIsAskedForOnTheEpochThatAllAreOn) {
  const Agreement agreement =
      agree(kSync, std::vector{on(kSecondEpochNamed, 6), on(kSecondEpochNamed, 5)}, Asked(2));
  EXPECT_EQ(agreement.again, (std::vector<Agreement::Pull>{{0, {.step = 5}, kSecondEpochNamed}}));
}

TEST(Settlement, APushWentBackWhenAnyPsSaysSo) {
  Settlement settlement(kSync, 2, "worker/1");
  settlement.start();
  settlement.answered(0, on(kFirstEpochNamed, 5));
  settlement.answered(1, on(kFirstEpochNamed, 5));
  ASSERT_TRUE(settlement.again().empty());
  settlement.start(true);
  settlement.answered(0, on(kFirstEpochNamed, 6));  // before it went back
  settlement.answered(1, on(kSecondEpochNamed, 2, replication::Outcome::kWentBack));
  ASSERT_EQ(settlement.again().size(), 1u);
  settlement.answered(0, on(kSecondEpochNamed, 2));
  ASSERT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().outcome, replication::Outcome::kWentBack);
  EXPECT_EQ(settlement.state().next_step, 2u);
  settlement.start(true);
  for (uint32_t ps = 0; ps < 2; ++ps) settlement.answered(ps, on(kSecondEpochNamed, 3));
  ASSERT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().outcome, replication::Outcome::kApplied)
      << "of this one none has said so";
}

// All ps have applied the push, and all go back before they agree.
TEST(Settlement, APushWentBackWhenTheParametersAreOfAnotherEpochThanItWas) {
  Settlement settlement(kSync, 2, "worker/1");
  settlement.start();
  for (uint32_t ps = 0; ps < 2; ++ps) settlement.answered(ps, on(kFirstEpochNamed, 5));
  ASSERT_TRUE(settlement.again().empty());
  settlement.start(true);
  settlement.answered(0, on(kFirstEpochNamed, 6));
  settlement.answered(1, on(kFirstEpochNamed, 5));
  ASSERT_EQ(settlement.again().size(), 1u);
  settlement.answered(0, on(kSecondEpochNamed, 2));
  ASSERT_EQ(settlement.again().size(), 1u);
  settlement.answered(1, on(kSecondEpochNamed, 2));
  ASSERT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().outcome, replication::Outcome::kWentBack);
}

TEST(Settlement, APullOfANewEpochIsNoPushThatWentBack) {
  Settlement settlement(kAsyncMode, 1, "worker/1");
  settlement.start();
  settlement.answered(0, on(kSecondEpochNamed, 2));
  ASSERT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().outcome, replication::Outcome::kApplied);
}

TEST(Settlement, APushThatWasStaleStaysStaleWhateverPullsSay) {
  Settlement settlement(kSync, 2, "worker/1");
  settlement.start();
  replication::StepState stale = at(6);
  stale.outcome = replication::Outcome::kStale;
  settlement.answered(0, stale);
  settlement.answered(1, at(5));
  ASSERT_EQ(settlement.again().size(), 1u);
  settlement.answered(0, at(5));
  EXPECT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().outcome, replication::Outcome::kStale);

  settlement.start();
  settlement.answered(0, at(6));
  settlement.answered(1, at(6));
  EXPECT_TRUE(settlement.again().empty());
  EXPECT_EQ(settlement.state().outcome, replication::Outcome::kApplied)
      << "that was the call before";
}

TEST(Settlement, GivesUpOnPsThatNeverAgree) {
  Settlement settlement(kSync, 2, "worker/1");
  settlement.start();
  settlement.answered(0, at(5));
  for (int round = 0; round < kAgreementRoundsMax; ++round) {
    settlement.answered(1, at(6));
    ASSERT_FALSE(settlement.again().empty());
  }
  settlement.answered(1, at(6));
  try {
    settlement.again();
    FAIL() << "it goes on asking";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error.message(),
              "worker/1 asked 1000 times and did not get parameters of the same step from every "
              "ps");
  }
}

TEST(SettlementDeathTest, HasAStateOnlyWhenSettled) {
  Settlement settlement(kSync, 2, "worker/1");
  settlement.start();
  EXPECT_DEATH(settlement.state(), "settled_");
  settlement.answered(0, at(1));
  settlement.answered(1, at(1));
  settlement.again();
  EXPECT_DEATH(settlement.answered(0, at(2)), "settled_");
}

}  // namespace
}  // namespace dtf::exchange
