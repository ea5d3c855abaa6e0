// The chief's snapshots: it takes, restores, skips and forgets them.

#include "tests/unit/train/checkpointer_fixture.h"

namespace dtf::train {
namespace {

TEST_F(CheckpointerTest, AfterTheLossOfAPsAllGoBackToTheNewestSnapshot) {
  snapshots_ = true;
  const auto training = chief(kSync);
  training->restore();
  ps_.setHoldsValues();
  training->saveInitial();
  ps_.calls();
  for (const uint64_t step : {10, 20, 30}) {
    training->startCut(step);
    ASSERT_EQ(training->snapshot(Motion::kTraining)->global_step, step);
  }
  const CallTexts calls = ps_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "snapshot 10"), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "snapshot 30 keep 20"), 1);
  EXPECT_EQ(steps(), std::vector<uint64_t>{0}) << "of the disk";
  ps_.setHeld({});
  const std::optional<WentBack> back = training->recover(37);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->step, 30u);
  EXPECT_EQ(back->reason, "ps/0 lost its values: all go back 7 steps to the snapshot of step 30");
  EXPECT_EQ(ps_.calls(), CallTexts{"restore snapshot 30"});
  EXPECT_EQ(training->recover(37), std::nullopt) << "all hold their values";
  // The next snapshot is of the new epoch; the one that all ps hold stays.
  ps_.setPosition({35});
  ASSERT_TRUE(training->snapshot(Motion::kAtRest));
  EXPECT_EQ(ps_.calls().back(), "snapshot 35 keep 30");
  EXPECT_EQ(training->snapshot(Motion::kAtRest), std::nullopt) << "the ps are where they were";
}

TEST_F(CheckpointerTest, ASnapshotThatCannotBeLoadedGivesWayToTheOneBeforeAndThenToTheCheckpoint) {
  snapshots_ = true;
  const auto training = chief(kSync);
  training->restore();
  ps_.setHoldsValues();
  training->saveInitial();
  for (const uint64_t step : {10, 20}) {
    ps_.setPosition({step});
    ASSERT_TRUE(training->snapshot(Motion::kAtRest));
  }
  ps_.calls();
  ps_.setHeld({});
  ps_.fail("restore", Error(ErrorCode::kBadData, "ps/0: a checksum is wrong"));
  EXPECT_EQ(training->recover(27)->reason,
            "ps/0 lost its values: all go back 17 steps to the snapshot of step 10");
  ps_.setHeld({});
  ps_.fail("restore", Error(ErrorCode::kBadData, "ps/0: a checksum is wrong"));
  EXPECT_EQ(training->recover(15)->reason,
            "ps/0 lost its values: all go back 15 steps to the checkpoint of step 0");
  EXPECT_EQ(ps_.calls(), (CallTexts{"restore snapshot 20", "restore snapshot 10",
                                    "restore snapshot 10", "restore step-0"}));
}

TEST_F(CheckpointerTest, WhatAJobThatWasCutShortLeftInMemoryIsGoneOnFrom) {
  snapshots_ = true;
  saveAll({10});
  ps_.snapshot({replication::kFirstEpoch, 900}, {900}, std::nullopt);
  ps_.calls();
  const auto starting = chief(kSync);
  EXPECT_EQ(starting->restore(), std::nullopt);
  EXPECT_EQ(ps_.calls(), CallTexts{"restore snapshot 900"});
  ASSERT_TRUE(starting->goesOn().went_back.has_value());
  EXPECT_TRUE(starting->goesOn().went_back->to_snapshot);
  EXPECT_EQ(starting->goesOn().went_back->reason,
            "no ps holds values: all take the snapshot of step 900");
  // A chief that is started again beside ps with values finds the snapshots of its own job.
  ps_.setPosition({20});
  ASSERT_TRUE(starting->snapshot(Motion::kAtRest));
  ps_.calls();
  EXPECT_EQ(chief(kSync)->restore(), std::nullopt);
  EXPECT_EQ(ps_.calls(), CallTexts{});
}

TEST_F(CheckpointerTest, SnapshotsNeedNoCheckpoints) {
  snapshots_ = true;
  checkpoints_ = false;
  const auto training = chief(kSync);
  EXPECT_NE(training->restore(), std::nullopt);
  ps_.setHoldsValues();
  training->saveInitial();
  EXPECT_TRUE(disk_.list(kRunDir).empty());
  ps_.setHeld({});
  EXPECT_EQ(training->recover(4)->reason,
            "ps/0 lost its values: all go back 4 steps to the snapshot of step 0");
  ps_.fail("restore", Error(ErrorCode::kBadData, "a checksum is wrong"));
  ps_.setHeld({});
  EXPECT_THROW(training->recover(4), Error) << "nothing holds them";
}

}  // namespace
}  // namespace dtf::train
