// A supervisor after the loss of its ps.

#include <algorithm>
#include <future>

#include "tests/unit/train/supervisor_fixture.h"

namespace dtf::train {
namespace {

using std::chrono::milliseconds;

TEST_F(SupervisorTest, APsThatIsStartedAgainTakesAllBack) {
  loseThePs();
  supervisor_->onPsReplaced();
  awaitEnd();
  EXPECT_EQ(end(), SavedSteps{});
  MutexLock lock(mutex_);
  EXPECT_EQ(went_back_, SavedSteps{10});
}

TEST_F(SupervisorTest, ALossDuringTheRecoveryIsRecoveredFromToo) {
  loseThePs();
  ps_.fail("restore", kPsIsAway);
  supervisor_->onPsReplaced();
  awaitEnd();
  EXPECT_EQ(ps_.calls(), (std::vector<std::string>{"restore step-10", "restore step-10"}));
}

TEST_F(SupervisorTest, WhatCannotBeRecoveredIsSaidOnce) {
  loseThePs();
  ps_.fail("restore", Error(ErrorCode::kBadData, "shard-0 is cut short"));
  supervisor_->onPsReplaced();
  awaitEnd();
  MutexLock lock(mutex_);
  EXPECT_EQ(hopeless_, "shard-0 is cut short");
}

TEST_F(SupervisorTest, ASaveThatWaitsForItsCutGivesWayToARecovery) {
  start(kSync, 0, 10);
  checkpointer_->restore();
  ps_.stopTraining();  // no ps gets there without the one that is lost
  answer(9);
  ps_.waitForCall("awaitCut");
  ps_.setHeld({replication::kFirstEpoch, 9});
  ps_.fail("positions", kPsIsAway);  // nor can another cut be agreed on
  supervisor_->onPsReplaced();
  awaitEnd();
  EXPECT_EQ(supervisor_->status().degraded, kPsIsAway.message());
  EXPECT_EQ(supervisor_->status().saved, 0u);
}

TEST_F(SupervisorTest, ARecoveryWaitsForTheSaveThatIsUnderWay) {
  start(kSync, 0, 10);
  checkpointer_->restore();
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  answer(9);
  ps_.waitForCall("save");
  ps_.setHeld({});
  supervisor_->onPsReplaced();
  EXPECT_EQ(supervisor_->status().saved, 0u);
  gate.set_value();
  awaitEnd();
  EXPECT_EQ(end(), SavedSteps{10});
  MutexLock lock(mutex_);
  EXPECT_EQ(went_back_, SavedSteps{10}) << "to the one that was under way";
}

// The first try fails, and the next one comes a second later.
TEST_F(SupervisorTest, AnEvaluationWaitsForARecoveryAndIsSavedWhereAllAreAgain) {
  loseThePs();
  ps_.fail("restore", kPsIsAway);
  supervisor_->onPsReplaced();
  ps_.waitForCall("restore step-10");
  ps_.setPosition({10});
  supervisor_->saveEvaluated(10);
  {
    MutexLock lock(mutex_);
    while (evaluated_.empty()) changed_.wait(mutex_);
    EXPECT_EQ(went_back_, SavedSteps{10});
  }
  EXPECT_EQ(end(), SavedSteps{}) << "that checkpoint is there already";
  MutexLock lock(mutex_);
  EXPECT_EQ(evaluated_, (std::vector<std::pair<uint64_t, uint64_t>>{{10, 10}}));
}

TEST_F(SupervisorTest, AnEvaluationThatTheJobWentBackBeforeIsNotSaved) {
  loseThePs();
  ps_.fail("restore", kPsIsAway);
  supervisor_->onPsReplaced();
  ps_.waitForCall("restore step-10");
  supervisor_->saveEvaluated(17);
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(went_back_, SavedSteps{10}) << "it has waited";
  }
  EXPECT_EQ(end(), SavedSteps{});
  const std::vector<std::string> calls = ps_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "startCut 17"), 0);
  MutexLock lock(mutex_);
  EXPECT_TRUE(evaluated_.empty());
}

TEST_F(SupervisorTest, NobodyWaitsForeverForARecovery) {
  waits_ = {.save = milliseconds(10), .recovery = milliseconds(10)};
  loseThePs();
  ps_.fail("restore", kPsIsAway, 1000);
  supervisor_->onPsReplaced();
  ps_.waitForCall("restore step-10");
  supervisor_->saveEvaluated(17);
  try {
    supervisor_->saveAtRest();
    FAIL() << "it was saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline);
    EXPECT_NE(error.message().find(" s for the recovery of a lost ps"), std::string::npos)
        << error.message();
    EXPECT_EQ(supervisor_->status().degraded, error.message());
  }
  EXPECT_EQ(end(), SavedSteps{});
  MutexLock lock(mutex_);
  EXPECT_TRUE(evaluated_.empty());
}

TEST_F(SupervisorTest, NobodyWaitsForeverForASave) {
  waits_.save = milliseconds(10);
  start(kSync, 0, 10);
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  answer(9);
  ps_.waitForCall("save step-10");
  supervisor_->saveEvaluated(30);
  EXPECT_THROW(supervisor_->saveAtRest(), Error);
  gate.set_value();
  EXPECT_EQ(end(), SavedSteps{10});
  MutexLock lock(mutex_);
  EXPECT_TRUE(evaluated_.empty());
}

// The ps is lost after 3 s of waiting for a save, and takes a second for its recovery.
TEST_F(SupervisorTest, ARecoveryBehindASaveHasATimeOfItsOwn) {
  waits_ = {.save = std::chrono::minutes(1), .recovery = milliseconds(2'900)};
  start(kSync, 0, 10);
  checkpointer_->restore();
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  answer(9);
  ps_.waitForCall("save step-10");
  std::vector<std::string> waited_for;
  on_waiting_ = [&](const std::string& what) {
    waited_for.push_back(what);
    if (waited_for.size() > 1) return;
    ps_.setHeld({});
    ps_.fail("restore", kPsIsAway);
    supervisor_->onPsReplaced();
    gate.set_value();
  };
  supervisor_->saveEvaluated(30);
  EXPECT_EQ(waited_for.front(), "the save that is under way");
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(went_back_, SavedSteps{10}) << "it has waited";
  }
  EXPECT_EQ(end(), SavedSteps{10});
}

// The training thread hears of it with its next answer, and may evaluate before.
TEST_F(SupervisorTest, WhatIsEvaluatedMayBeLost) {
  loseThePs();
  EXPECT_FALSE(supervisor_->hasGoneBackBefore(17));
  supervisor_->onPsReplaced();
  awaitEnd();
  EXPECT_TRUE(supervisor_->hasGoneBackBefore(17));
  EXPECT_FALSE(supervisor_->hasGoneBackBefore(10)) << "all have these values again";
  replication::StepState state;
  state.epoch = ps_.epoch();
  state.global_step = state.next_step = 10;
  supervisor_->onStep(state);
  EXPECT_FALSE(supervisor_->hasGoneBackBefore(17));
}

// A job that looks up rows pulls them, and has no other answer.
TEST_F(SupervisorTest, StepsThatComeAgainBehindAPullAreSavedWhenTheyAreDue) {
  start(kSync, 0, 10);
  answer(1, 9);
  expectTried(1);
  answer(10, 15);
  replication::StepState pulled;
  pulled.epoch = 2;
  pulled.global_step = pulled.next_step = 3;
  supervisor_->onStep(pulled);
  ps_.setPosition({9});
  pulled.global_step = pulled.next_step = 9;
  supervisor_->onStep(pulled);
  const std::vector<std::string> calls = ps_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "startCut 10"), 2);
}

TEST_F(SupervisorTest, StepsThatComeAgainAreSavedWhenTheyAreDue) {
  start(kSync, 0, 10);
  answer(1, 9);
  expectTried(1);
  answer(10, 15);
  replication::StepState back;
  back.outcome = replication::Outcome::kWentBack;
  back.global_step = back.next_step = 12;
  supervisor_->onStep(back);
  answer(13, 19);
  expectTried(2);
  EXPECT_EQ(end(), (SavedSteps{10, 20}));
}

}  // namespace
}  // namespace dtf::train
