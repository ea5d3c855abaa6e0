#include "common/train/checkpointer.h"

#include <cerrno>

#include "tests/unit/train/checkpointer_fixture.h"

namespace dtf::train {
namespace {

using std::chrono::milliseconds;

// ---- restore

TEST_F(CheckpointerTest, AnEmptyFolderStartsAnew) {
  EXPECT_NE(chief(kSync)->restore(), std::nullopt);
}

// ---- start

const Error kLostPs(ErrorCode::kUnavailable, "lost ps/0");

TEST_F(CheckpointerTest, AStartAsksAgainUntilThePsHoldWhatWasBrought) {
  const auto starting = chief(kSync);
  ASSERT_TRUE(starting->start().has_value());
  const std::optional<uint64_t> again = starting->start();
  ASSERT_TRUE(again.has_value()) << "the ps that took the values is lost, the next one holds none";
  ps_.setHeld({*again, 0});
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(steps(), std::vector<uint64_t>{0}) << "there is one to go back to";
}

TEST_F(CheckpointerTest, APsThatIsLostDuringTheInitialCheckpointDoesNotEndTheChief) {
  const auto starting = chief(kSync);
  const std::optional<uint64_t> epoch = starting->start();
  ps_.setHeld({epoch.value(), 0});
  ps_.fail("save", kLostPs, 3);
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(steps(), std::vector<uint64_t>{0});
}

// Else the loss of a ps before that would be the end, for the chief that has trained knows of no start.
TEST_F(CheckpointerTest, WithReplicasAndNoCheckpointsNobodyTrainsBeforeTheyAreWhole) {
  checkpoints_ = false;
  replicas_ = true;
  const auto starting = chief(kSync);
  const std::optional<uint64_t> epoch = starting->start();
  ps_.setHeld({epoch.value(), 0});
  ps_.calls();
  ps_.fail("awaitReplicas", kLostPs);
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(ps_.calls(), (CallTexts{"awaitReplicas", "awaitReplicas"}));
}

TEST_F(CheckpointerTest, AnInitialCheckpointThatCanNotBeHadIsGivenUp) {
  const auto starting = chief(kSync);
  const std::optional<uint64_t> epoch = starting->start();
  ps_.setHeld({epoch.value(), 0});
  ps_.fail("save", Error(ErrorCode::kDeadline, "ps/0 has waited"), 100);
  EXPECT_EQ(starting->start(), std::nullopt) << "training goes on, and the next one is tried";
  EXPECT_EQ(steps(), std::vector<uint64_t>{});
}

// A ps may have done what it was told, and been lost with its answer.
TEST_F(CheckpointerTest, AGoingBackThatFailedIsTriedAgainUnderAnotherName) {
  saveAll({10});
  const auto starting = chief(kSync);
  ps_.fail("restore", kLostPs);
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(ps::epochNumber(ps_.epoch()), 3u) << "the checkpoint is of 1, the first try of 2";
}

TEST_F(CheckpointerTest, AStartThatIsRefusedEnds) {
  saveAll({10});
  ps_.fail("restore", Error(ErrorCode::kBadData, "shard-0 is cut short"));
  EXPECT_THROW(chief(kSync)->start(), Error);
  ps_.fail("restore", kLostPs);
  const auto starting = chief(kSync);
  EXPECT_EQ(starting->start(), std::nullopt) << "this passes";
  EXPECT_EQ(starting->lastStep(), 10u);
}

// Whether it finds ps that hold values, and trains on, or brings them the newest checkpoint.
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

TEST_F(CheckpointerTest, TheNewestWholeOneIsRestored) {
  saveAll({10, 20});
  damage(20, checkpoint::kManifestFile);
  const auto next = chief(kSync);
  EXPECT_EQ(next->restore(), std::nullopt);
  EXPECT_EQ(next->lastStep(), 10u);
  EXPECT_EQ(ps_.calls(), CallTexts{"restore step-10"});
}

TEST_F(CheckpointerTest, ItSaysWhatChangedSinceTheCheckpoint) {
  settings_ = {{"data.seed", "1"}, {"data.train: content", "00ff"}, {"model.loss", "mse"}};
  saveAll({10});
  settings_[0].value = "2";
  settings_[1].value = "ff00";
  const auto next = chief(kSync, 50);
  ASSERT_EQ(next->restore(), std::nullopt);
  EXPECT_EQ(next->resumed()->step, 10u);
  EXPECT_EQ(next->resumed()->checkpoint, kRunDir / "checkpoints" / "step-10");
  EXPECT_NE(next->resumed()->saved, "");
  EXPECT_EQ(next->resumed()->changes,
            (std::vector<std::string>{"steps 1000 -> 50", "data.seed 1 -> 2",
                                      "data.train: content is another"}));
}

TEST_F(CheckpointerTest, AFreshJobSetsTheOldCheckpointsAside) {
  saveAll({10});
  fresh_ = true;
  const auto next = chief(kSync);
  EXPECT_NE(next->restore(), std::nullopt);
  EXPECT_FALSE(next->resumed());
  EXPECT_EQ(steps(), std::vector<uint64_t>{});
  EXPECT_TRUE(disk_.exists(kRunDir / "checkpoints.old-1" / "step-10" / checkpoint::kManifestFile));
}

TEST_F(CheckpointerTest, AFreshJobIsStillFreshAfterAPsWasLostAtItsStart) {
  saveAll({10});
  fresh_ = true;
  ps_.fail("held", Error(ErrorCode::kUnavailable, "lost ps/0"));
  const auto next = chief(kSync);
  EXPECT_NE(next->start(), std::nullopt);
  EXPECT_FALSE(next->resumed());
  EXPECT_TRUE(disk_.exists(kRunDir / "checkpoints.old-1" / "step-10" / checkpoint::kManifestFile));
}

TEST_F(CheckpointerTest, AFreshJobNeedsPsThatHoldNothing) {
  saveAll({10});
  fresh_ = true;
  ps_.setHoldsValues();
  try {
    chief(kSync)->restore();
    FAIL() << "restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("--fresh"), std::string::npos) << error.message();
  }
  EXPECT_EQ(steps(), std::vector<uint64_t>{10});
}

TEST_F(CheckpointerTest, OneOfAnotherJobIsRefusedByName) {
  saveAll({10});
  job_ = "other";
  try {
    chief(kSync)->restore();
    FAIL() << "restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("step-10 is a checkpoint of the job 'test', but this job is "
                                   "'other'"),
              std::string::npos)
        << error.message();
  }
  EXPECT_EQ(ps_.calls(), CallTexts{}) << "nothing was restored";
}

TEST_F(CheckpointerTest, APositionOfAnotherLengthIsBadDataOfThatPs) {
  for (const CutPosition& position : {CutPosition{}, CutPosition{1, 2}}) {
    ps_.setPosition(position);
    try {
      chief(kSync)->save(Motion::kAtRest);
      FAIL() << "saved";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      EXPECT_NE(error.message().find("ps/0 says how far it is with"), std::string::npos)
          << error.message();
    }
  }
}

// A chief that is restarted while its ps live.
TEST_F(CheckpointerTest, OneOfAModelThatComputesSomethingElseIsRefused) {
  saveAll({10});
  model_.loss.kind = model::Loss::kMse;
  try {
    chief(kSync)->restore();
    FAIL() << "restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("this job has 'loss mse'"), std::string::npos)
        << error.message();
  }
}

TEST_F(CheckpointerTest, WhenNoneCanBeUsedEachIsNamedAndNothingStartsAnew) {
  saveAll({10, 20});
  damage(20, checkpoint::kManifestFile);
  damage(10, "shard-0-of-1.safetensors");
  const auto next = chief(kSync);
  try {
    next->restore();
    FAIL() << "it started anew";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    for (const char* text : {"step 20: ", "manifest.json", "step 10: ", "shard-0-of-1.safetensors",
                             "another run_dir", "/run/checkpoints"})
      EXPECT_NE(error.message().find(text), std::string::npos) << text << "\n" << error.message();
  }
  EXPECT_EQ(steps(), (std::vector<uint64_t>{10, 20})) << "they are still there";
}

// ---- which step it is

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

// ---- what it cost

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

// ---- a ps is started again

TEST_F(CheckpointerTest, AfterTheLossOfAPsAllGoBackToTheNewestCheckpoint) {
  const auto training = chief(kSync);
  EXPECT_NE(training->restore(), std::nullopt);
  ps_.setHoldsValues();
  for (const uint64_t step : {10, 20}) {
    ps_.setPosition({step});
    ASSERT_TRUE(training->save(Motion::kAtRest));
  }
  ps_.calls();
  ps_.setHeld({});
  const std::optional<WentBack> back = training->recover(27);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 20u);
  EXPECT_EQ(back->steps_lost, 7u);
  EXPECT_EQ(back->reason, "ps/0 lost its values: all go back 7 steps to the checkpoint of step 20");
  EXPECT_EQ(ps_.calls(), CallTexts{"restore step-20"});
  EXPECT_EQ(ps::epochNumber(ps_.epoch()), 2u);
  EXPECT_EQ(training->recover(27), std::nullopt) << "all hold their values";
  // What is saved from here on is of the second epoch, and the next one follows it.
  ps_.setPosition({30});
  ASSERT_TRUE(training->save(Motion::kAtRest));
  ps_.setHeld({});
  ASSERT_EQ(chief(kSync)->restore(), std::nullopt);
  EXPECT_EQ(ps::epochNumber(ps_.epoch()), 3u);
}

TEST_F(CheckpointerTest, WithoutACheckpointALostPsIsTheEnd) {
  const auto training = chief(kSync);
  training->restore();
  try {
    training->recover(27);
    FAIL() << "the job would start anew";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find("ps/0 lost its values, and nothing holds them"),
              std::string::npos)
        << error.message();
  }
}

TEST_F(CheckpointerTest, ARecoveryThatFailedIsTriedAgainInAnEpochOfItsOwn) {
  saveAll({10});
  const auto training = chief(kSync);
  ASSERT_EQ(training->restore(), std::nullopt);
  const uint64_t first = ps_.epoch();
  ps_.setHeld({});
  ps_.fail("restore", Error(ErrorCode::kUnavailable, "lost ps/0"));
  EXPECT_THROW(training->recover(12), Error);
  ASSERT_TRUE(training->recover(12));
  EXPECT_GT(ps_.epoch(), first);
}

TEST_F(CheckpointerTest, ARecoveryWhoseLastAnswerWasLostIsNotForgotten) {
  saveAll({10});
  const auto training = chief(kSync);
  ASSERT_EQ(training->restore(), std::nullopt);
  // What an earlier try has brought about on every ps.
  const uint64_t next = ps::nextEpoch(ps_.epoch(), 1);
  ps_.setHeld({next, 10, true, ps::kFirstEpoch, 10});
  const std::optional<WentBack> back = training->recover(12);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 10u);
  EXPECT_EQ(back->steps_lost, 2u);
  EXPECT_EQ(training->recover(12), std::nullopt);
}

TEST_F(CheckpointerTest, ThereIsACheckpointBeforeAnybodyTrains) {
  const auto training = chief(kSync);
  training->restore();
  training->saveInitial();
  EXPECT_EQ(steps(), std::vector<uint64_t>{0});
  EXPECT_EQ(training->lastStep(), 0u);
  ps_.setPosition({10});
  ASSERT_TRUE(training->save(Motion::kAtRest));
  EXPECT_EQ(steps(), std::vector<uint64_t>{10}) << "the initial values can be had again";
}

TEST_F(CheckpointerTest, WhereThereIsOneOrOthersTrainNoneIsTakenAtTheStart) {
  saveAll({10});
  const auto restored = chief(kSync);
  restored->restore();
  restored->saveInitial();
  const auto continued = chief(kSync);  // the ps hold what the one before restored
  EXPECT_EQ(continued->restore(), std::nullopt);
  EXPECT_EQ(continued->lastStep(), 10u);
  continued->saveInitial();
  EXPECT_EQ(steps(), std::vector<uint64_t>{10});
}

TEST_F(CheckpointerTest, AFirstCheckpointThatCannotBeWrittenStopsNobody) {
  const auto training = chief(kSync);
  training->restore();
  ps_.fail("save", Error(ErrorCode::kCannotWrite, "the disk is full"));
  training->saveInitial();
  EXPECT_EQ(steps(), std::vector<uint64_t>{});
}

}  // namespace
}  // namespace dtf::train
