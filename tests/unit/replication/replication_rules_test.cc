#include "common/replication/replication_rules.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace dtf::replication {
namespace {

using Mode = cluster::ReplicationSpec::Mode;
using Batches = std::vector<uint64_t>;

const cluster::ReplicationSpec kAsync{};

cluster::ReplicationSpec sync(uint32_t aggregate, uint32_t workers) {
  return {Mode::kSync, aggregate, workers};
}

std::vector<uint32_t> quotas(const cluster::ReplicationSpec& spec, uint32_t workers) {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; rank < workers; ++rank) result.push_back(batchesPerStep(spec, rank));
  return result;
}

TEST(ReplicationRules, WhatTheFileLeavesOutIsTheNumberOfWorkers) {
  EXPECT_EQ(completeReplication({Mode::kSync, 0, 0}, 3), sync(3, 3));
  EXPECT_EQ(completeReplication({Mode::kSync, 2, 0}, 3), sync(2, 3));
  EXPECT_EQ(completeReplication({Mode::kSync, 0, 4}, 3), sync(4, 4)) << "replicationFault's affair";
}

TEST(ReplicationRules, FaultsAreNamedWithTheNumbers) {
  EXPECT_EQ(replicationFault(kAsync, 3), std::nullopt);
  EXPECT_EQ(replicationFault(sync(1, 3), 3), std::nullopt);
  EXPECT_EQ(replicationFault(sync(kReplicasToAggregateMax, 3), 3), std::nullopt);
  EXPECT_EQ(replicationFault(sync(2, 4), 3),
            "total_num_replicas is 4, but the cluster has 3 workers");
  EXPECT_EQ(replicationFault(sync(0, 3), 3),
            "replicas_to_aggregate is 0, but must be from 1 to 65536");
  EXPECT_EQ(replicationFault(sync(kReplicasToAggregateMax + 1, 3), 3),
            "replicas_to_aggregate is 65537, but must be from 1 to 65536");
  EXPECT_EQ(replicationFault({static_cast<Mode>(7), 3, 3}, 3), "replication mode 7");
}

TEST(ReplicationRules, QuotasShareTheBatchesOfAStep) {
  EXPECT_EQ(quotas(sync(2, 2), 2), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(quotas(sync(4, 2), 2), (std::vector<uint32_t>{2, 2}));
  EXPECT_EQ(quotas(sync(8, 3), 3), (std::vector<uint32_t>{3, 3, 2}));
  EXPECT_EQ(quotas(sync(2, 3), 3), (std::vector<uint32_t>{1, 1, 1})) << "backups: everyone may";
  EXPECT_EQ(quotas(kAsync, 3), (std::vector<uint32_t>{1, 1, 1}));
}

// Relations that hold for all numbers of workers and gradients.
TEST(ReplicationRules, AgreeWithEachOther) {
  for (uint32_t workers = 1; workers <= 9; ++workers) {
    for (uint32_t aggregate = 1; aggregate <= 20; ++aggregate) {
      const cluster::ReplicationSpec spec = sync(aggregate, workers);
      SCOPED_TRACE(::testing::Message() << aggregate << " of " << workers);
      const std::vector<uint32_t> owed = quotas(spec, workers);
      const uint32_t computed = std::accumulate(owed.begin(), owed.end(), 0u);
      EXPECT_EQ(computed, batchesOfOrderStep(spec, workers)) << "each batch has one reader";
      EXPECT_EQ(hasBackupWorkers(spec), computed > gradientsPerStep(spec));
      EXPECT_EQ(spareWorkers(spec), hasBackupWorkers(spec) ? computed - gradientsPerStep(spec) : 0);
      EXPECT_EQ(queuesBatches(spec), owed[0] > 1) << "rank 0 owes most";
      EXPECT_TRUE(sharesSteps(spec));
      EXPECT_EQ(cutKind(spec), CutKind::kAtStep);
    }
    EXPECT_EQ(batchesOfOrderStep(kAsync, workers), workers);
  }
}

TEST(ReplicationRules, AnAsyncGradientIsAStepOfItsOwn) {
  EXPECT_FALSE(sharesSteps(kAsync));
  EXPECT_FALSE(hasBackupWorkers(kAsync));
  EXPECT_EQ(spareWorkers(kAsync), 0u);
  EXPECT_FALSE(queuesBatches(kAsync));
  EXPECT_EQ(gradientsPerStep(kAsync), 1u);
  EXPECT_EQ(cutKind(kAsync), CutKind::kHeld);
}

TEST(ReplicationRules, BoundedTrainingHasTheRulesOfAsyncAndABound) {
  const cluster::ReplicationSpec bounded{.mode = Mode::kBounded, .staleness = 3};
  EXPECT_EQ(replicationFault(bounded, 2), std::nullopt);
  EXPECT_EQ(replicationName(bounded), "bounded");
  EXPECT_EQ(staleness(bounded), 3u);
  EXPECT_EQ(staleness(kAsync), std::nullopt);
  EXPECT_EQ(staleness(sync(2, 2)), std::nullopt);
  EXPECT_FALSE(sharesSteps(bounded));
  EXPECT_EQ(gradientsPerStep(bounded), 1u);
  EXPECT_EQ(batchesOfOrderStep(bounded, 4), 4u);
  EXPECT_EQ(cutKind(bounded), CutKind::kHeld);
  EXPECT_EQ(replicationFault({.mode = Mode::kAsync, .staleness = 3}, 2),
            "staleness is only for bounded training");
}

TEST(ReplicationRules, OnlyAsyncGradientsMayBeOfParametersBefore) {
  cluster::ReplicationSpec spec = kAsync;
  spec.overlap = true;
  EXPECT_EQ(replicationFault(spec, 2), std::nullopt);
  spec = sync(2, 2);
  spec.overlap = true;
  EXPECT_EQ(replicationFault(spec, 2), "overlap is only for async training");
}

TEST(ReplicationRules, EachFormOfTransfersHasANameAndAShareOfFloat32) {
  using enum cluster::ReplicationSpec::TransferDtype;
  cluster::ReplicationSpec spec;
  EXPECT_FALSE(recodesTransfers(spec));
  EXPECT_EQ(transferText(spec), "float32");
  spec.transfer_dtype = kBFloat16;
  EXPECT_TRUE(recodesTransfers(spec));
  EXPECT_FALSE(isLossy(spec));
  EXPECT_EQ(transferShare(spec), 0.5);
  EXPECT_EQ(replicationFault(spec, 2), std::nullopt);
  spec.transfer_dtype = kInt8;
  EXPECT_TRUE(isLossy(spec));
  EXPECT_EQ(transferText(spec), "int8");
  EXPECT_LT(transferShare(spec), 0.27);
  spec.transfer_dtype = kTopK;
  EXPECT_EQ(replicationFault(spec, 2), "top_k is 0, but must be above 0, up to 0.5");
  spec.transfer_top_k = 0.01;
  EXPECT_EQ(replicationFault(spec, 2), std::nullopt);
  EXPECT_EQ(transferText(spec), "top_k 0.01");
  EXPECT_LT(transferShare(spec), 0.05);
  for (const double share : {-0.1, 0.51, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    spec.transfer_top_k = share;
    EXPECT_TRUE(replicationFault(spec, 2).has_value()) << share;
  }
  spec.transfer_dtype = static_cast<cluster::ReplicationSpec::TransferDtype>(4);
  EXPECT_EQ(replicationFault(spec, 2), "transfer dtype 4");
}

TEST(ReplicationRules, ASyncJobGoesOnAtTheStepWithAnyNumberOfWorkers) {
  EXPECT_EQ(batchesDone(sync(2, 2), 2, {40}, 40), (Batches{40, 40}));
  EXPECT_EQ(restoredPosition(sync(3, 3), 3, {40, 40}, 40), (Batches{40}));
}

TEST(ReplicationRules, AnAsyncJobGoesOnWhereEachWorkerWas) {
  EXPECT_EQ(batchesDone(kAsync, 2, {30, 11}, 41), (Batches{30, 11}));
  EXPECT_EQ(restoredPosition(kAsync, 2, {30, 11}, 41), (Batches{30, 11}));
}

TEST(ReplicationRules, OtherAsyncWorkersTakeEvenPartsOfWhatWasDone) {
  EXPECT_EQ(restoredPosition(kAsync, 3, {30, 11}, 41), (Batches{14, 14, 14}));
  EXPECT_EQ(restoredPosition(kAsync, 1, {30, 11}, 41), (Batches{41}));
  const uint64_t many = ~uint64_t{0};
  EXPECT_EQ(restoredPosition(kAsync, 2, {}, many), (Batches{many / 2 + 1, many / 2 + 1}))
      << "a manifest's numbers don't overflow";
}

TEST(ReplicationRules, WithSumsByHostTheLowestRankOfAHostPushesForAll) {
  cluster::ReplicationSpec spec = sync(5, 5);
  EXPECT_EQ(pusherOf(spec, 3), 3u);
  EXPECT_EQ(pushedBy(spec, 3), (std::vector<uint32_t>{3}));
  EXPECT_EQ(topologyText(spec), "");
  spec.host_leaders = {0, 0, 2, 0, 2};
  EXPECT_EQ(replicationFault(spec, 5), std::nullopt);
  EXPECT_EQ(pusherOf(spec, 3), 0u);
  EXPECT_EQ(pushedBy(spec, 0), (std::vector<uint32_t>{0, 1, 3}));
  EXPECT_EQ(pushedBy(spec, 3), std::vector<uint32_t>{});
  EXPECT_EQ(batchesPerStep(spec, 3), 1u) << "it computes as ever";
  EXPECT_EQ(gradientsPerStep(spec), 5u);
  EXPECT_EQ(topologyText(spec), "[0, 0, 2, 0, 2]");
}

TEST(ReplicationRules, ATopologyThatMakesNoSenseIsAFault) {
  const auto fault = [](cluster::ReplicationSpec spec, std::vector<uint32_t> leaders) {
    spec.host_leaders = std::move(leaders);
    return replicationFault(spec, 3).value_or("");
  };
  EXPECT_EQ(fault(sync(3, 3), {0, 0}), "a topology of 2 workers, but the cluster has 3");
  EXPECT_NE(fault(sync(3, 3), {0, 2, 2}), "") << "worker/2 leads worker/1, which is before it";
  EXPECT_NE(fault(sync(3, 3), {0, 0, 1}), "") << "worker/1 leads, and is led";
  EXPECT_NE(fault(sync(3, 3), {0, 0, 7}), "");
  EXPECT_NE(fault(sync(2, 3), {0, 0, 2}), "") << "backup workers";
  EXPECT_NE(fault(sync(6, 3), {0, 0, 2}), "");
  EXPECT_NE(fault(kAsync, {0, 0, 2}), "");
}

TEST(ReplicationRulesDeathTest, AnUncheckedSpecIsAMistakeOfTheCaller) {
  EXPECT_DEATH(gradientsPerStep(sync(0, 2)), "");
  EXPECT_DEATH(cutKind({static_cast<Mode>(7), 1, 1}), "");
  EXPECT_DEATH(batchesPerStep(sync(2, 2), 2), "rank");
}

}  // namespace
}  // namespace dtf::replication
