#include "common/train/chief_decision.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using Held = std::vector<checkpoint::PsState>;
using replication::RecoveryAction;

constexpr uint64_t kFirst = replication::nextEpoch(0, 7);
constexpr uint64_t kSecond = replication::nextEpoch(kFirst, 7);
const checkpoint::PsState kNothing;
const checkpoint::PsState kInitial{{kFirst, 0}};
const checkpoint::PsState kTrained{{kFirst, 77}};
const checkpoint::PsState kWentBack{
    {kSecond, 40, checkpoint::EpochOrigin::kCheckpoint, {kFirst, 40}}};

replication::RecoveryDecision decide(const Held& held,
                                     std::optional<checkpoint::CutName> checkpoint = std::nullopt,
                                     uint64_t trained_on = 0) {
  return decideAsChief(held, {checkpoint, trained_on, 0, 9});
}

TEST(ChiefDecision, IsWhatAllPsSay) {
  EXPECT_EQ(decide({kNothing, kNothing}).action, RecoveryAction::kStart);
  EXPECT_EQ(decide({kNothing, kNothing}, checkpoint::CutName{kFirst, 40}).action,
            RecoveryAction::kGoBack);
  EXPECT_EQ(decide({kTrained, kTrained}, checkpoint::CutName{kFirst, 40}).action,
            RecoveryAction::kContinue);
}

TEST(ChiefDecision, WhatAChiefThatWasLostHadBegunIsDoneAgain) {
  EXPECT_EQ(decide({kInitial, kNothing}).action, RecoveryAction::kStart);
  EXPECT_EQ(replication::epochNumber(decide({kInitial, kNothing}).epoch), 2u) << "by all ps";
  const replication::RecoveryDecision again =
      decide({kWentBack, kTrained}, checkpoint::CutName{kFirst, 40});
  EXPECT_EQ(again.action, RecoveryAction::kGoBack);
  EXPECT_EQ(again.cut, (checkpoint::CutName{kFirst, 40}));
  EXPECT_EQ(replication::epochNumber(again.epoch), 3u);
}

TEST(ChiefDecision, AModelIsNeverTornInSilence) {
  try {
    decide({kTrained, kNothing});
    FAIL() << "nothing holds the values of ps/1";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_EQ(
        error.message(),
        "ps/1 lost its values, and nothing holds them; add `checkpoint:` to the file, or save "
        "more often, so that the next loss costs only some steps");
  }
  EXPECT_EQ(decide({kTrained, kNothing}, checkpoint::CutName{kFirst, 40}).reason,
            "ps/1 lost its values: all go back 37 steps to the checkpoint of step 40");
}

// The decision is made from the statuses that the ps send.
TEST(ChiefDecision, SnapshotsAreTheWordsOfEachPs) {
  checkpoint::PsState trained = kTrained;
  checkpoint::PsState lost = kNothing;
  trained.snapshots = {{kFirst, 60}, {kFirst, 70}};
  lost.snapshots = {{kFirst, 50}, {kFirst, 60}};
  const replication::RecoveryDecision decision =
      decide({trained, lost}, checkpoint::CutName{kFirst, 40});
  EXPECT_EQ(decision.reason,
            "ps/1 lost its values: all go back 17 steps to the snapshot of step 60");
  // Half of the ps have restored it, and their chief was lost.
  checkpoint::PsState back{
      {kSecond, 60, checkpoint::EpochOrigin::kSnapshot, {kFirst, 60}}, false, 0, trained.snapshots};
  EXPECT_EQ(decide({back, trained}).origin, checkpoint::EpochOrigin::kSnapshot);
  EXPECT_EQ(decide({back, trained}).cut, (checkpoint::CutName{kFirst, 60}));
}

TEST(ChiefDecision, AChiefThatHasTrainedNeverStartsAnew) {
  EXPECT_THROW(decide({kNothing, kNothing}, std::nullopt, kFirst), Error);
  EXPECT_THROW(decide({kInitial, kNothing}, std::nullopt, kFirst), Error);
  EXPECT_EQ(
      replication::epochNumber(decide({kNothing}, checkpoint::CutName{kFirst, 40}, kSecond).epoch),
      3u);
}

}  // namespace
}  // namespace dtf::train
