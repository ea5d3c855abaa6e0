#include "common/train/epochs.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using cluster::ReplicationSpec;

cluster::TrainSpec job(uint64_t epochs, ReplicationSpec replication = {}) {
  cluster::TrainSpec train;
  train.epochs = epochs;
  train.steps = 77;
  train.data.batch_size = 10;
  train.replication = replication;
  return train;
}

TEST(StepsOf, AreThoseOfTheFileWithoutEpochs) {
  EXPECT_EQ(stepsOf(job(0), 100, 4), 77u);
}

TEST(StepsOf, AnAsyncStepIsOneBatchOfSomeWorker) {
  EXPECT_EQ(stepsOf(job(1), 100, 4), 10u);
  EXPECT_EQ(stepsOf(job(3), 109, 4), 30u) << "what fills no batch is left out";
}

TEST(StepsOf, ASyncStepTakesABatchOfEachWorker) {
  const ReplicationSpec sync{ReplicationSpec::Mode::kSync};
  EXPECT_EQ(stepsOf(job(3, sync), 100, 2), 15u);
  EXPECT_EQ(stepsOf(job(1, sync), 100, 4), 3u) << "the last step begins another epoch";
  const ReplicationSpec backups{ReplicationSpec::Mode::kSync, 3, 4};
  EXPECT_EQ(stepsOf(job(2, backups), 100, 4), 5u) << "the backup worker's batches are read, too";
  const ReplicationSpec several{ReplicationSpec::Mode::kSync, 4, 2};
  EXPECT_EQ(stepsOf(job(2, several), 100, 2), 5u);
}

TEST(StepsOf, AnEpochHasABatch) {
  EXPECT_THROW(stepsOf(job(1), 9, 1), Error);
}

}  // namespace
}  // namespace dtf::train
