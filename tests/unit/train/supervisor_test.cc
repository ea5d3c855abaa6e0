#include "common/train/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <future>
#include <thread>

#include "common/base/log.h"
#include "tests/unit/train/supervisor_fixture.h"

namespace dtf::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// ---- when

TEST_F(SupervisorTest, EveryStepsIsEachMultipleOfThem) {
  start(kSync, 0, 10);
  answer(1, 9);
  expectTried(1);
  answer(10, 19);
  expectTried(2);
  answer(20, 28);
  EXPECT_EQ(end(), (SavedSteps{10, 20}));
}

// A job that goes on at step 8: the first reply is for 9, so 10 is still possible.
TEST_F(SupervisorTest, TheFirstMultipleThatCanBeHadIsNotPassedOver) {
  start(kSync, 0, 10);
  answer(9);
  expectTried(1);
  EXPECT_EQ(end(), SavedSteps{10});
}

TEST_F(SupervisorTest, AMultipleThatIsPassedAlreadyIsNotTried) {
  start(kSync, 0, 10);
  answer(10, 18);
  EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
  answer(19);
  expectTried(1);
  EXPECT_EQ(end(), SavedSteps{20});
}

TEST_F(SupervisorTest, AsynchronousTrainingIsSavedWhereItIs) {
  start(kAsync, 0, 10);
  answer(1, 9);
  EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
  answer(12);  // others push, too
  expectTried(1);
  answer(13, 19);
  answer(20);
  expectTried(2);
  EXPECT_EQ(end(), (SavedSteps{12, 20}));
}

TEST_F(SupervisorTest, AsynchronousTrainingIsNotSavedWhereItWasRestored) {
  for (const uint64_t restored : {0, 20}) {
    SCOPED_TRACE(restored);
    start(kAsync, 0, 10);
    answer(restored);  // the first pull
    answer(restored + 1);
    EXPECT_EQ(end(), SavedSteps{});
    EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
  }
}

TEST_F(SupervisorTest, EverySecondsCountsFromTheOneBefore) {
  start(kSync, 60, 0);
  answer(1, 5);
  clock_.advance(milliseconds(59'999));
  answer(6);
  EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
  clock_.advance(milliseconds(1));
  answer(7);
  expectTried(1);
  answer(8);
  clock_.advance(seconds(59));
  answer(9);
  clock_.advance(seconds(1));
  answer(10);
  expectTried(2);
  EXPECT_EQ(end(), (SavedSteps{8, 11}));
}

// Until then a lost ps costs all that was trained.
TEST_F(SupervisorTest, TheFirstSaveOfAJobComesEarly) {
  start(kSync, 600, 0);
  clock_.advance(milliseconds(59'999));
  answer(1);
  EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
  clock_.advance(milliseconds(1));
  answer(2);
  expectTried(1);
  clock_.advance(seconds(599));
  answer(3);
  clock_.advance(seconds(1));
  answer(4);
  expectTried(2);
  EXPECT_EQ(end(), (SavedSteps{3, 5}));
}

TEST_F(SupervisorTest, AJobThatGoesOnHasItsFirstSave) {
  goes_on_from_ = 10;
  start(kSync, 600, 0);
  clock_.advance(seconds(599));
  answer(11);
  EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
  clock_.advance(seconds(1));
  answer(12);
  expectTried(1);
  EXPECT_EQ(end(), SavedSteps{13});
}

TEST_F(SupervisorTest, StepsAndSecondsBothCount) {
  start(kSync, 60, 10);
  answer(1, 9);
  expectTried(1);
  clock_.advance(seconds(60));
  answer(12);
  expectTried(2);
  answer(13, 19);
  expectTried(3);
  EXPECT_EQ(end(), (SavedSteps{10, 13, 20}));
}

// A status page must not wait for the disk.
TEST_F(SupervisorTest, StatusAnswersWhileASaveIsUnderWay) {
  start(kSync, 0, 10);
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  std::thread last([this] { supervisor_->saveAtRest(); });
  ps_.waitForCall("save step-");
  EXPECT_EQ(supervisor_->status().saved, 0u);
  gate.set_value();
  last.join();
  EXPECT_EQ(supervisor_->status().saved, 1u);
}

// The callback may read the status.
TEST_F(SupervisorTest, NoLockIsHeldOverTheReport) {
  start(kSync, 0, 10);
  on_saved_ = [this] { EXPECT_EQ(supervisor_->status().failed, 0u); };
  supervisor_->saveAtRest();
  EXPECT_EQ(supervisor_->status().saved, 1u);
}

TEST_F(SupervisorTest, WhatIsDueAfterAFailureWaitsForTheAnnouncedRetry) {
  start(kSync, 0, 1);
  ps_.fail("save", Error(ErrorCode::kCannotWrite, "the disk is full"));
  answer(1);
  expectTried(0, 1);
  ps_.calls();
  answer(2, 5);
  clock_.advance(milliseconds(999));
  answer(6);
  EXPECT_TRUE(ps_.calls().empty()) << "announced was one second";
  clock_.advance(milliseconds(1));
  answer(7);
  expectTried(1, 1);
}

TEST_F(SupervisorTest, AMultipleDuringAnotherSaveIsLeftOut) {
  start(kSync, 0, 10);
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  answer(9);
  answer(10, 24);  // 20 falls due, but the disk is slow
  gate.set_value();
  expectTried(1);
  answer(25, 28);
  EXPECT_EQ(supervisor_->status().saved, 1u);
  answer(29);
  expectTried(2);
  EXPECT_EQ(end(), (SavedSteps{10, 30}));
}

TEST_F(SupervisorTest, ATimeDuringAnotherSaveIsMadeUpFor) {
  start(kSync, 60, 0);
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  clock_.advance(seconds(60));
  answer(9);
  clock_.advance(seconds(60));
  answer(10, 24);
  gate.set_value();
  expectTried(1);
  answer(25);
  expectTried(2);
  EXPECT_EQ(end(), (SavedSteps{10, 26}));
}

// ---- evaluations

TEST_F(SupervisorTest, TheParametersThatAreEvaluatedAreSavedBesideIt) {
  start(kSync, 0, 0);
  answer(30);
  supervisor_->saveEvaluated(30);
  expectTried(1);
  EXPECT_EQ(end(), SavedSteps{30});
  MutexLock lock(mutex_);
  EXPECT_EQ(evaluated_, (std::vector<std::pair<uint64_t, uint64_t>>{{30, 30}}));
}

// Both are due at step 10: one save serves both, whichever comes first.
TEST_F(SupervisorTest, AnEvaluationAtAMultipleHasTheCheckpointOfThatStep) {
  start(kSync, 0, 10);
  answer(9);
  ps_.setPosition({10});
  supervisor_->saveEvaluated(10);
  {
    MutexLock lock(mutex_);
    while (evaluated_.empty()) changed_.wait(mutex_);
  }
  EXPECT_EQ(end(), SavedSteps{10});
  MutexLock lock(mutex_);
  EXPECT_EQ(evaluated_, (std::vector<std::pair<uint64_t, uint64_t>>{{10, 10}}));
}

// With backup workers the others go on without this one.
TEST_F(SupervisorTest, ACheckpointBehindItsEvaluationIsNamedByItsOwnStep) {
  start(kSync, 0, 0);
  answer(30);
  ps_.setPosition({33});
  supervisor_->saveEvaluated(30);
  expectTried(1);
  EXPECT_EQ(end(), SavedSteps{34});
  MutexLock lock(mutex_);
  EXPECT_EQ(evaluated_, (std::vector<std::pair<uint64_t, uint64_t>>{{30, 34}}));
}

TEST_F(SupervisorTest, AnEvaluationWhoseSaveFailsHasNoCheckpoint) {
  start(kAsync, 0, 0);
  ps_.fail("save", Error(ErrorCode::kCannotWrite, "the disk is full"));
  answer(30);
  supervisor_->saveEvaluated(30);
  expectTried(0, 1);
  clock_.advance(seconds(1));
  answer(31);
  expectTried(1, 1);
  EXPECT_EQ(end(), SavedSteps{31});
  MutexLock lock(mutex_);
  EXPECT_TRUE(evaluated_.empty()) << "31 is not what was evaluated";
}

TEST_F(SupervisorTest, AnAnswerThatIsNoneStartsNothing) {
  start(kSync, 0, 1);
  replication::StepState state;
  state.global_step = 5;
  state.done = true;
  supervisor_->onStep(state);
  state.done = false;
  state.outcome = replication::Outcome::kQueued;
  supervisor_->onStep(state);
  EXPECT_EQ(end(), SavedSteps{});
  EXPECT_EQ(ps_.calls(), std::vector<std::string>{});
}

// ---- trouble

TEST_F(SupervisorTest, AFailureIsSaidAndRetriedAfterLongerAndLongerPauses) {
  start(kSync, 0, 100);
  ps_.fail("save", Error(ErrorCode::kCannotWrite, "the disk is full"), 3);
  answer(99);
  expectTried(0, 1);
  EXPECT_EQ(supervisor_->status().degraded, "the disk is full");
  uint64_t step = 101;
  uint64_t failed = 1;
  for (const int pause : {1000, 2000}) {
    clock_.advance(milliseconds(pause - 1));
    answer(step++);
    expectTried(0, failed);
    clock_.advance(milliseconds(1));
    answer(step++);
    expectTried(0, ++failed);
  }
  clock_.advance(seconds(4));
  answer(step++);
  expectTried(1, 3);
  EXPECT_EQ(supervisor_->status().degraded, "");
  EXPECT_EQ(supervisor_->status().last_step, 106u);
  ps_.fail("save", kPsIsAway);
  answer(199);
  expectTried(1, 4);
  clock_.advance(seconds(1));
  answer(201);
  expectTried(2, 4);
  EXPECT_EQ(end(), (SavedSteps{106, 202})) << "and the pauses begin at a second again";
}

TEST_F(SupervisorTest, ACutThatCouldNotBeStartedIsRetriedElsewhere) {
  start(kSync, 0, 10);
  ps_.fail("startCut", kPsIsAway);
  answer(9);
  expectTried(0, 1);
  clock_.advance(seconds(1));
  answer(12);
  expectTried(1, 1);
  EXPECT_EQ(end(), SavedSteps{13});
}

// ---- the end

TEST_F(SupervisorTest, AtRestTheVeryPlaceIsSavedOnce) {
  start(kSync, 0, 100);
  answer(42);
  supervisor_->saveAtRest();
  supervisor_->saveAtRest();
  EXPECT_EQ(supervisor_->status().saved, 1u);
  EXPECT_EQ(supervisor_->status().last_step, 42u);
  EXPECT_EQ(end(), SavedSteps{42});
}

TEST_F(SupervisorTest, AFailureAtRestIsCountedAndGoesOnAsItIs) {
  start(kSync, 0, 100);
  answer(42);
  ps_.fail("save", Error(ErrorCode::kTrainingFailed, "'v' has nan"));
  try {
    supervisor_->saveAtRest();
    FAIL() << "it was saved";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTrainingFailed);
    EXPECT_EQ(error.message(), "'v' has nan");
  }
  EXPECT_EQ(supervisor_->status().failed, 1u);
  EXPECT_EQ(supervisor_->status().degraded, "'v' has nan");
  EXPECT_EQ(supervisor_->status().last_step, std::nullopt);
  supervisor_->saveAtRest();
  EXPECT_EQ(supervisor_->status().degraded, "");
}

TEST_F(SupervisorTest, OldOnesThatCannotBeRemovedAreNoFailure) {
  start(kSync, 0, 10);
  answer(9);
  expectTried(1);
  disk_.failAll(testing::SimulatedDisk::Op::kRemove, EIO);
  answer(19);
  expectTried(2, 0);
  EXPECT_EQ(supervisor_->status().degraded, "");
}

// A chief that has failed never reaches the checkpoint's step.
TEST_F(SupervisorTest, TheEndCallsOffACheckpointWhosePlaceIsNotReached) {
  start(kSync, 0, 10);
  ps_.stopTraining();
  answer(9);
  ps_.waitForCall("awaitCut");
  EXPECT_EQ(end(), SavedSteps{});
  const std::vector<std::string> calls = ps_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "save"), 0);
}

TEST_F(SupervisorTest, TheEndWaitsForTheSaveUnderWay) {
  start(kSync, 0, 10);
  std::promise<void> gate;
  ps_.closeGate(gate.get_future().share());
  answer(9);
  ps_.waitForCall("save step-10");
  std::thread opener([&gate] { gate.set_value(); });
  EXPECT_EQ(end(), SavedSteps{10});
  opener.join();
}

}  // namespace
}  // namespace dtf::train
