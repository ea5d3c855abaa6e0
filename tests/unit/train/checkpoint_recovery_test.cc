// The checkpoint that a chief starts from, and goes back to when a ps has lost its values.

#include "tests/unit/train/checkpointer_fixture.h"

namespace dtf::train {
namespace {

const Error kLostPs(ErrorCode::kUnavailable, "lost ps/0");

class CheckpointRecovery : public CheckpointerTest {};

TEST_F(CheckpointRecovery, AnEmptyFolderStartsAnew) {
  EXPECT_NE(chief(kSync)->restore(), std::nullopt);
}

TEST_F(CheckpointRecovery, AStartAsksAgainUntilThePsHoldWhatWasBrought) {
  const auto starting = chief(kSync);
  ASSERT_TRUE(starting->start().has_value());
  const std::optional<uint64_t> again = starting->start();
  ASSERT_TRUE(again.has_value()) << "the ps that took the values is lost, the next one holds none";
  ps_.setHeld({*again, 0});
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(steps(), std::vector<uint64_t>{0}) << "there is one to go back to";
}

TEST_F(CheckpointRecovery, APsThatIsLostDuringTheInitialCheckpointDoesNotEndTheChief) {
  const auto starting = chief(kSync);
  const std::optional<uint64_t> epoch = starting->start();
  ps_.setHeld({epoch.value(), 0});
  ps_.fail("save", kLostPs, 3);
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(steps(), std::vector<uint64_t>{0});
}

// Otherwise the loss of a ps before that would end the job: the chief has trained and has no start
// to go back to.
TEST_F(CheckpointRecovery, WithReplicasAndNoCheckpointsNobodyTrainsBeforeTheyAreWhole) {
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

TEST_F(CheckpointRecovery, AnInitialCheckpointThatCanNotBeHadIsGivenUp) {
  const auto starting = chief(kSync);
  const std::optional<uint64_t> epoch = starting->start();
  ps_.setHeld({epoch.value(), 0});
  ps_.fail("save", Error(ErrorCode::kDeadline, "ps/0 has waited"), 100);
  EXPECT_EQ(starting->start(), std::nullopt) << "training goes on, and the next one is tried";
  EXPECT_EQ(steps(), std::vector<uint64_t>{});
}

// A ps may have restored the checkpoint and been lost before its reply.
TEST_F(CheckpointRecovery, AGoingBackThatFailedIsTriedAgainUnderAnotherName) {
  saveAll({10});
  const auto starting = chief(kSync);
  ps_.fail("restore", kLostPs);
  EXPECT_EQ(starting->start(), std::nullopt);
  EXPECT_EQ(replication::epochNumber(ps_.epoch()), 3u)
      << "the checkpoint is of 1, the first try of 2";
}

TEST_F(CheckpointRecovery, AStartThatIsRefusedEnds) {
  saveAll({10});
  ps_.fail("restore", Error(ErrorCode::kBadData, "shard-0 is cut short"));
  EXPECT_THROW(chief(kSync)->start(), Error);
  ps_.fail("restore", kLostPs);
  const auto starting = chief(kSync);
  EXPECT_EQ(starting->start(), std::nullopt) << "this passes";
  EXPECT_EQ(starting->lastStep(), 10u);
}

TEST_F(CheckpointRecovery, TheNewestWholeOneIsRestored) {
  saveAll({10, 20});
  damage(20, checkpoint::kManifestFile);
  const auto next = chief(kSync);
  EXPECT_EQ(next->restore(), std::nullopt);
  EXPECT_EQ(next->lastStep(), 10u);
  EXPECT_EQ(ps_.calls(), CallTexts{"restore step-10"});
}

TEST_F(CheckpointRecovery, ItSaysWhatChangedSinceTheCheckpoint) {
  settings_ = {{"data.seed", "1"}, {"data.train: content", "00ff"}, {"model.loss", "mse"}};
  saveAll({10});
  settings_[0].value = "2";
  settings_[1].value = "ff00";
  const auto next = chief(kSync, 50);
  ASSERT_EQ(next->restore(), std::nullopt);
  EXPECT_EQ(next->goesOn().resumed->step, 10u);
  EXPECT_EQ(next->goesOn().resumed->checkpoint, kRunDir / "checkpoints" / "step-10");
  EXPECT_NE(next->goesOn().resumed->saved, "");
  EXPECT_EQ(next->goesOn().resumed->changes,
            (std::vector<std::string>{"steps 1000 -> 50", "data.seed 1 -> 2",
                                      "data.train: content is another"}));
}

TEST_F(CheckpointRecovery, AFreshJobSetsTheOldCheckpointsAside) {
  saveAll({10});
  fresh_ = true;
  const auto next = chief(kSync);
  EXPECT_NE(next->restore(), std::nullopt);
  EXPECT_FALSE(next->goesOn().resumed);
  EXPECT_EQ(steps(), std::vector<uint64_t>{});
  EXPECT_TRUE(disk_.exists(kRunDir / "checkpoints.old-1" / "step-10" / checkpoint::kManifestFile));
}

TEST_F(CheckpointRecovery, AFreshJobIsStillFreshAfterAPsWasLostAtItsStart) {
  saveAll({10});
  fresh_ = true;
  ps_.fail("held", Error(ErrorCode::kUnavailable, "lost ps/0"));
  const auto next = chief(kSync);
  EXPECT_NE(next->start(), std::nullopt);
  EXPECT_FALSE(next->goesOn().resumed);
  EXPECT_TRUE(disk_.exists(kRunDir / "checkpoints.old-1" / "step-10" / checkpoint::kManifestFile));
}

TEST_F(CheckpointRecovery, AFreshJobNeedsPsThatHoldNothing) {
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

TEST_F(CheckpointRecovery, OneOfAnotherJobIsRefusedByName) {
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

TEST_F(CheckpointRecovery, APositionOfAnotherLengthIsBadDataOfThatPs) {
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
TEST_F(CheckpointRecovery, OneOfAModelThatComputesSomethingElseIsRefused) {
  saveAll({10});
  model_.loss.kind = model::Loss::kMse;
  try {
    chief(kSync)->restore();
    FAIL() << "restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("this job has 'loss mean_squared_error'"), std::string::npos)
        << error.message();
  }
}

TEST_F(CheckpointRecovery, WhenNoneCanBeUsedEachIsNamedAndNothingStartsAnew) {
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

// ---- a ps is started again

TEST_F(CheckpointRecovery, AfterTheLossOfAPsAllGoBackToTheNewestCheckpoint) {
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
  EXPECT_EQ(replication::epochNumber(ps_.epoch()), 2u);
  EXPECT_EQ(training->recover(27), std::nullopt) << "all hold their values";
  // Later checkpoints are of the second epoch, and the next epoch follows it.
  ps_.setPosition({30});
  ASSERT_TRUE(training->save(Motion::kAtRest));
  ps_.setHeld({});
  ASSERT_EQ(chief(kSync)->restore(), std::nullopt);
  EXPECT_EQ(replication::epochNumber(ps_.epoch()), 3u);
}

TEST_F(CheckpointRecovery, WithoutACheckpointALostPsIsTheEnd) {
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

TEST_F(CheckpointRecovery, ARecoveryThatFailedIsTriedAgainInAnEpochOfItsOwn) {
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

TEST_F(CheckpointRecovery, ARecoveryWhoseLastAnswerWasLostIsNotForgotten) {
  saveAll({10});
  const auto training = chief(kSync);
  ASSERT_EQ(training->restore(), std::nullopt);
  // The state that an earlier try has left on every ps.
  const uint64_t next = replication::nextEpoch(ps_.epoch(), 1);
  ps_.setHeld({{next, 10, checkpoint::EpochOrigin::kCheckpoint, {replication::kFirstEpoch, 10}}});
  const std::optional<WentBack> back = training->recover(12);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 10u);
  EXPECT_EQ(back->steps_lost, 2u);
  EXPECT_EQ(training->recover(12), std::nullopt);
}

TEST_F(CheckpointRecovery, ThereIsACheckpointBeforeAnybodyTrains) {
  const auto training = chief(kSync);
  training->restore();
  training->saveInitial();
  EXPECT_EQ(steps(), std::vector<uint64_t>{0});
  EXPECT_EQ(training->lastStep(), 0u);
  ps_.setPosition({10});
  ASSERT_TRUE(training->save(Motion::kAtRest));
  EXPECT_EQ(steps(), std::vector<uint64_t>{10}) << "the initial values can be had again";
}

TEST_F(CheckpointRecovery, WhereThereIsOneOrOthersTrainNoneIsTakenAtTheStart) {
  saveAll({10});
  const auto restored = chief(kSync);
  restored->restore();
  restored->saveInitial();
  const auto continued = chief(kSync);  // the ps hold the values that the previous chief restored
  EXPECT_EQ(continued->restore(), std::nullopt);
  EXPECT_EQ(continued->lastStep(), 10u);
  continued->saveInitial();
  EXPECT_EQ(steps(), std::vector<uint64_t>{10});
}

TEST_F(CheckpointRecovery, AFirstCheckpointThatCannotBeWrittenStopsNobody) {
  const auto training = chief(kSync);
  training->restore();
  ps_.fail("save", Error(ErrorCode::kCannotWrite, "the disk is full"));
  training->saveInitial();
  EXPECT_EQ(steps(), std::vector<uint64_t>{});
}

}  // namespace
}  // namespace dtf::train
