#include "common/train/epochs.h"

#include <gtest/gtest.h>

#include "common/base/error.h"

namespace dtf::train {
namespace {

using cluster::ReplicationSpec;

const ReplicationSpec kSync{ReplicationSpec::Mode::kSync};

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
  EXPECT_EQ(stepsOf(job(3), 109, 4), 33u) << "the last batch of each epoch has 9 examples";
}

TEST(StepsOf, ASyncStepTakesABatchOfEachWorker) {
  EXPECT_EQ(stepsOf(job(3, kSync), 100, 2), 15u);
  EXPECT_EQ(stepsOf(job(1, kSync), 100, 4), 3u) << "the last step has 20 examples";
  EXPECT_EQ(stepsOf(job(2, kSync), 100, 4), 6u) << "no step is of two epochs";
  const ReplicationSpec backups{ReplicationSpec::Mode::kSync, 3, 4};
  EXPECT_EQ(stepsOf(job(2, backups), 100, 4), 6u) << "the backup worker's batches are read, too";
  const ReplicationSpec several{ReplicationSpec::Mode::kSync, 4, 2};
  EXPECT_EQ(stepsOf(job(2, several), 100, 2), 6u);
}

TEST(StepsOf, AnEpochOfFewExamplesIsOneShortBatch) {
  EXPECT_EQ(stepsOf(job(4), 9, 1), 4u);
  EXPECT_EQ(stepsOf(job(4, kSync), 1, 3), 4u);
  EXPECT_THROW(stepsOf(job(1), 0, 1), Error);
}

TEST(CheckBatches, StepsNeedAWholeBatch) {
  EXPECT_THROW(checkBatches(job(0), 9, "x"), Error);
  checkBatches(job(1), 9, "x");
}

TEST(PlanOf, StepsHaveBatchesOfOneSize) {
  EXPECT_EQ(planOf(job(0), 109, 3).counts(), (std::vector<int64_t>{10}));
  EXPECT_EQ(planOf(job(1), 109, 3).counts(), (std::vector<int64_t>{10, 9}));
}

TEST(RowWeight, IsByTheExamplesOfTheBatchAlone) {
  const cluster::BatchPlan plan = planOf(job(1, kSync), 34, 3);
  EXPECT_EQ(rowWeight(plan, 0), 1);
  EXPECT_EQ(rowWeight(plan, 3), 0.2) << "two of ten examples";
  EXPECT_EQ(rowWeight(plan, 4), 0.1);
  EXPECT_EQ(rowWeight(planOf(job(1, kSync), 3, 2), 1), 0.5) << "the largest have two";
}

TEST(CountsOf, AreTheLargestAndTheWorkersOwn) {
  const auto of = [](const cluster::TrainSpec& train, int64_t examples, uint32_t rank) {
    return countsOf(train, planOf(train, examples, 3), rank, 3);
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(of(job(1, kSync), 34, 0), (Counts{10, 2}));
  EXPECT_EQ(of(job(1, kSync), 34, 1), (Counts{10, 1}));
  EXPECT_EQ(of(job(1, kSync), 31, 2), Counts{10}) << "its share of the last step is empty";
  EXPECT_EQ(of(job(1, kSync), 4, 2), (Counts{2, 1})) << "all workers have the largest";
  EXPECT_EQ(of(job(1), 34, 2), (Counts{10, 4})) << "async: anybody's may be the short one";
  EXPECT_EQ(of(job(0, kSync), 34, 2), Counts{10});
  cluster::TrainSpec timed = job(1, kSync);
  timed.kernels = cluster::KernelRule::kTimed;
  EXPECT_EQ(of(timed, 34, 0), (Counts{10, 2, 1})) << "the chief times for all";
  EXPECT_EQ(of(timed, 34, 1), (Counts{10, 1}));
}

TEST(WithLargestBatch, AreNoMoreExamplesThanThereAre) {
  EXPECT_EQ(withLargestBatch(job(1), 7).data.batch_size, 7);
  EXPECT_EQ(withLargestBatch(job(1), 0).data.batch_size, 10) << "not known yet";
  EXPECT_EQ(withLargestBatch(job(0), 7).data.batch_size, 10);
}

}  // namespace
}  // namespace dtf::train
