#include "common/train/checkpointer.h"

#include <cerrno>

#include "tests/unit/train/checkpointer_fixture.h"

namespace dtf::train {
namespace {

using std::chrono::milliseconds;

// ---- start

// In both cases: ps that hold values train on, and others take the newest checkpoint.
TEST_F(CheckpointerTest, AChiefThatIsStartedAgainSweepsWhatItsPredecessorLeftHalfSaved) {
  saveAll({10});
  for (const bool ps_hold_values : {false, true}) {
    if (ps_hold_values) ps_.setHoldsValues();
    checkpoint::CheckpointFolder killed = folder();
    const auto attempt = folder().path() / killed.beginAttempt(20);
    const std::vector<float> values(16);
    const checkpoint::TensorPart part{"v", Shape{16}, 0, 16, values.data()};
    checkpoint::writeShard(disk_, attempt, 0, 1, {&part, 1});
    ASSERT_EQ(disk_.list(folder().path()).size(), 2u);
    EXPECT_EQ(chief(kSync)->start(), std::nullopt);
    EXPECT_FALSE(disk_.exists(attempt)) << ps_hold_values;
    EXPECT_EQ(disk_.list(folder().path()).size(), 1u) << ps_hold_values;
    EXPECT_EQ(steps(), std::vector<uint64_t>{10});
  }
}

// ---- the step of a checkpoint

TEST_F(CheckpointerTest, TheGlobalStepIsThatOfTheParametersNotTheSumOfThePositions) {
  const auto saving = chief(kAsync);
  ps_.setPosition({5, 5});
  ps_.setGlobalStep(7);
  EXPECT_EQ(saving->save(Motion::kTraining)->global_step, 7u);
  EXPECT_EQ(saving->lastStep(), 7u);
  const checkpoint::Manifest manifest = folder().latestValid().found->manifest;
  EXPECT_EQ(manifest.global_step, 7u);
  EXPECT_EQ(manifest.worker_batches, (std::vector<uint64_t>{5, 5}));
  ps_.setPosition({5, 6});
  EXPECT_FALSE(saving->save(Motion::kAtRest)) << "ps/0 has no more updates than before";
}

// ---- cuts

TEST_F(CheckpointerTest, ALaterPlaceIsTriedWhenOneWasPassed) {
  const auto saving = chief(kSync);
  ps_.setPosition({8});
  saving->startCut(3);
  EXPECT_EQ(saving->save(Motion::kTraining)->global_step, 9u);
}

TEST_F(CheckpointerTest, ACutThatThePsWereNotToldIsNotAwaited) {
  const auto saving = chief(kSync);
  ps_.fail("startCut", Error(ErrorCode::kUnavailable, "lost ps/0"));
  EXPECT_THROW(saving->startCut(5), Error);
  ps_.calls();
  ps_.setPosition({6});
  EXPECT_EQ(saving->save(Motion::kTraining)->global_step, 7u);
  EXPECT_EQ(ps_.calls(), (CallTexts{"positions", "startCut 7", "awaitCut", "save step-7.tmp-1.1"}));
}

TEST_F(CheckpointerTest, ACutThatFailedIsAsOneThatCameTooLate) {
  const auto saving = chief(kSync);
  saving->startCut(5);
  ps_.setPosition({6});
  ps_.fail("awaitCut", Error(ErrorCode::kDeadline, "ps/0 has waited"));
  EXPECT_EQ(saving->save(Motion::kTraining)->global_step, 7u);
}

TEST_F(CheckpointerTest, AHoldIsReleasedWhenItComesToNoCut) {
  ps_.setPosition({0, 0});
  for (const char* call : {"positions", "startCut", "awaitCut"}) {
    SCOPED_TRACE(call);
    const auto saving = chief(kAsync);
    ps_.fail(call, Error(ErrorCode::kUnavailable, "lost ps/0"));
    ps_.fail("releaseHold", Error(ErrorCode::kUnavailable, "lost ps/0, too"));
    try {
      saving->save(Motion::kTraining);
      FAIL() << "it was saved";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "lost ps/0") << "the first error is the one to be told";
    }
    EXPECT_EQ(ps_.calls().back(), "releaseHold");
  }
  ps_.setPosition({0});
  ps_.fail("awaitCut", Error(ErrorCode::kUnavailable, "lost ps/0"));
  EXPECT_THROW(chief(kSync)->save(Motion::kTraining), Error);
  EXPECT_EQ(ps_.calls().back(), "awaitCut") << "sync training holds nothing";
}

// ---- a job of fewer steps than its checkpoint

TEST_F(CheckpointerTest, AJobOfFewerStepsThanItsCheckpointHasNothingToSave) {
  saveAll({100});
  const auto shorter = chief(kSync, 50);
  ASSERT_EQ(shorter->restore(), std::nullopt);
  EXPECT_FALSE(shorter->save(Motion::kAtRest));
  EXPECT_EQ(steps(), std::vector<uint64_t>{100});
}

TEST_F(CheckpointerTest, APlaceBeyondTheStepsOfTheJobIsNotPulledBack) {
  ps_.setHoldsValues();
  ps_.setPosition({100});
  const auto shorter = chief(kSync, 50);
  ASSERT_EQ(shorter->restore(), std::nullopt) << "the ps hold the values of an earlier process";
  EXPECT_EQ(shorter->save(Motion::kAtRest)->global_step, 100u);
}

// ---- trouble with old ones

TEST_F(CheckpointerTest, OldOnesThatCannotBeRemovedDoNotUndoTheNewOne) {
  saveAll({10});
  const auto saving = chief(kSync, 1000, 1);
  disk_.failAll(testing::SimulatedDisk::Op::kRemove, EIO);
  ps_.setPosition({20});
  const std::optional<SavedCheckpoint> saved = saving->save(Motion::kAtRest);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->global_step, 20u);
  EXPECT_EQ(steps(), std::vector<uint64_t>{20});
}

// ---- the cost of a checkpoint

TEST_F(CheckpointerTest, TheChiefsWaitForTheCutCountsAsAStall) {
  const auto saving = chief(kSync);
  ps_.slowDown("startCut", milliseconds(30));
  ps_.slowDown("awaitCut", milliseconds(500));
  saving->startCut(5);
  const std::optional<SavedCheckpoint> saved = saving->save(Motion::kTraining);
  EXPECT_NEAR(saved->stall_seconds, 0.035, 1e-9) << "the capture's 5 ms, too";
  EXPECT_NEAR(saved->seconds, 0.5, 1e-9);
}

TEST_F(CheckpointerTest, AHoldCountsAsAStall) {
  const auto saving = chief(kAsync);
  ps_.setPosition({3, 4});
  for (const char* call : {"positions", "startCut", "awaitCut"})
    ps_.slowDown(call, milliseconds(10));
  EXPECT_NEAR(saving->save(Motion::kTraining)->stall_seconds, 0.030, 1e-9);
  ps_.setPosition({9, 9});
  EXPECT_NEAR(saving->save(Motion::kAtRest)->stall_seconds, 0.005, 1e-9) << "nobody trains";
}

}  // namespace
}  // namespace dtf::train
