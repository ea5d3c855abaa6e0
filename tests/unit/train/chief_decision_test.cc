#include "common/train/chief_decision.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using Held = std::vector<checkpoint::HeldValues>;
using ps::RecoveryAction;

constexpr uint64_t kFirst = ps::nextEpoch(0, 7);
constexpr uint64_t kSecond = ps::nextEpoch(kFirst, 7);
const checkpoint::HeldValues kNothing;
const checkpoint::HeldValues kInitial{kFirst, 0};
const checkpoint::HeldValues kTrained{kFirst, 77};
const checkpoint::HeldValues kWentBack{kSecond, 40, true, kFirst, 40};

ps::RecoveryDecision decide(const Held& held, std::optional<ps::CutName> checkpoint = std::nullopt,
                            uint64_t trained_on = 0) {
  return decideAsChief(held, {checkpoint, trained_on, 0, 9});
}

TEST(ChiefDecision, IsWhatAllPsSay) {
  EXPECT_EQ(decide({kNothing, kNothing}).action, RecoveryAction::kStart);
  EXPECT_EQ(decide({kNothing, kNothing}, ps::CutName{kFirst, 40}).action, RecoveryAction::kGoBack);
  EXPECT_EQ(decide({kTrained, kTrained}, ps::CutName{kFirst, 40}).action,
            RecoveryAction::kContinue);
}

TEST(ChiefDecision, WhatAChiefThatWasLostHadBegunIsDoneAgain) {
  EXPECT_EQ(decide({kInitial, kNothing}).action, RecoveryAction::kStart);
  EXPECT_EQ(ps::epochNumber(decide({kInitial, kNothing}).epoch), 2u) << "by all ps";
  const ps::RecoveryDecision again = decide({kWentBack, kTrained}, ps::CutName{kFirst, 40});
  EXPECT_EQ(again.action, RecoveryAction::kGoBack);
  EXPECT_EQ(again.cut, (ps::CutName{kFirst, 40}));
  EXPECT_EQ(ps::epochNumber(again.epoch), 3u);
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
  EXPECT_EQ(decide({kTrained, kNothing}, ps::CutName{kFirst, 40}).reason,
            "ps/1 lost its values: all go back 37 steps to the checkpoint of step 40");
}

// What comes over the wire is what is decided with.
TEST(ChiefDecision, SnapshotsAreTheWordsOfEachPs) {
  checkpoint::HeldValues trained = kTrained;
  checkpoint::HeldValues lost = kNothing;
  trained.snapshots = {{kFirst, 60}, {kFirst, 70}};
  lost.snapshots = {{kFirst, 50}, {kFirst, 60}};
  const ps::RecoveryDecision decision = decide({trained, lost}, ps::CutName{kFirst, 40});
  EXPECT_EQ(decision.reason,
            "ps/1 lost its values: all go back 17 steps to the snapshot of step 60");
  // Half of the ps went back to it, and their chief was lost.
  checkpoint::HeldValues back{kSecond, 60, true, kFirst, 60, true, trained.snapshots};
  EXPECT_EQ(decide({back, trained}).origin, ps::EpochOrigin::kSnapshot);
  EXPECT_EQ(decide({back, trained}).cut, (ps::CutName{kFirst, 60}));
}

TEST(ChiefDecision, AChiefThatHasTrainedNeverStartsAnew) {
  EXPECT_THROW(decide({kNothing, kNothing}, std::nullopt, kFirst), Error);
  EXPECT_THROW(decide({kInitial, kNothing}, std::nullopt, kFirst), Error);
  EXPECT_EQ(ps::epochNumber(decide({kNothing}, ps::CutName{kFirst, 40}, kSecond).epoch), 3u);
}

}  // namespace
}  // namespace dtf::train
