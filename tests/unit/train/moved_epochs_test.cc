#include "common/train/moved_epochs.h"

#include <gtest/gtest.h>

#include "common/train/checkpointer.h"

namespace dtf::train {
namespace {

// Of a job of 6 epochs of 4 steps.
checkpoint::Manifest savedAt(uint64_t step, uint64_t workers) {
  checkpoint::Manifest saved;
  saved.global_step = step;
  saved.worker_batches.resize(workers);
  saved.extra[kEpochsKey] = "6";
  saved.extra[kSettingsKey] = "replication.mode=sync\nsteps=24\ndata.seed=7";
  return saved;
}

TEST(MovedEpochs, AJobThatIsAsItWasHasItsEpochs) {
  EXPECT_EQ(stepsOfSaved(savedAt(8, 3)), 24u);
  EXPECT_EQ(movedEpochsText(savedAt(8, 3), {6, 24, 3, true}), "");
  EXPECT_EQ(movedEpochsText(savedAt(8, 3), {12, 48, 3, true}), "") << "more of them";
  EXPECT_EQ(movedEpochsText(savedAt(8, 3), {0, 66, 1, true}), "") << "of steps";
}

TEST(MovedEpochs, OtherStepsOfAnEpochMoveThePlaceInIt) {
  EXPECT_EQ(movedEpochsText(savedAt(8, 3), {6, 66, 1, true}),
            "steps of an epoch 4 -> 11: epoch 2.00 was reached, and training goes on at epoch "
            "0.73");
}

TEST(MovedEpochs, OtherAsyncWorkersHaveOtherParts) {
  const std::string expected =
      "workers 3 -> 2: what was done of the epoch is dealt out evenly, so some of its examples are "
      "used twice or not at all";
  EXPECT_EQ(movedEpochsText(savedAt(9, 3), {6, 24, 2, false}), expected);
  EXPECT_EQ(movedEpochsText(savedAt(24, 3), {6, 24, 2, false}), "") << "it is done";
  EXPECT_EQ(movedEpochsText(savedAt(9, 3), {6, 24, 2, true}), "") << "a step is one of all";
}

TEST(MovedEpochs, WhatACheckpointDoesNotSayIsNotGuessed) {
  checkpoint::Manifest saved = savedAt(8, 3);
  saved.extra.erase(kEpochsKey);
  EXPECT_EQ(movedEpochsText(saved, {6, 66, 1, true}), "");
  saved = savedAt(8, 3);
  saved.extra[kSettingsKey] = "steps=many";
  EXPECT_EQ(stepsOfSaved(saved), 0u);
  EXPECT_EQ(movedEpochsText(saved, {6, 66, 1, true}), "");
}

}  // namespace
}  // namespace dtf::train
