#include "common/cluster/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "common/base/random.h"

namespace dtf::cluster {
namespace {

TEST(GlobalBatch, NumbersEverySlotOfEveryStepOnce) {
  std::set<uint64_t> seen;
  for (uint64_t step = 0; step < 5; ++step)
    for (uint32_t rank = 0; rank < 3; ++rank)
      for (uint32_t batch = 0; batch < 2; ++batch)
        seen.insert(globalBatch(step, batch, rank, 3, 6));
  EXPECT_EQ(seen.size(), 30u);
  EXPECT_EQ(*seen.rbegin(), 29u);
}

TEST(EvenShare, DiffersByOneAtMostAndLeavesNothingOut) {
  for (uint64_t total = 0; total < 20; ++total)
    for (uint64_t shares = 1; shares < 8; ++shares) {
      uint64_t next = 0;
      for (uint64_t i = 0; i < shares; ++i) {
        const Share share = evenShare(total, shares, i);
        EXPECT_EQ(share.first, next);
        EXPECT_GE(share.count, total / shares);
        EXPECT_LE(share.count, (total + shares - 1) / shares);
        next = share.first + share.count;
      }
      EXPECT_EQ(next, total);
    }
}

TEST(BatchPlan, WholeBatchesLeaveTheRestOfAnEpochOut) {
  const BatchPlan plan = BatchPlan::ofWholeBatches(103, 10);
  EXPECT_EQ(plan.groupsPerEpoch(), 10u);
  EXPECT_EQ(plan.examplesPerGroup(), 10);
  EXPECT_EQ(plan.range(9), (BatchRange{0, 90, 10}));
  EXPECT_EQ(plan.range(10), (BatchRange{1, 0, 10}));
  EXPECT_EQ(plan.counts(), (std::vector<int64_t>{10}));
}

TEST(BatchPlan, TheLastGroupOfAnEpochIsSharedOutEvenly) {
  const BatchPlan plan = BatchPlan::ofEpochs(26, 4, 3);
  EXPECT_EQ(plan.groupsPerEpoch(), 3u);
  EXPECT_EQ(plan.range(5), (BatchRange{0, 20, 4}));
  EXPECT_EQ(plan.range(6), (BatchRange{0, 24, 1}));
  EXPECT_EQ(plan.range(7), (BatchRange{0, 25, 1}));
  EXPECT_EQ(plan.range(8), (BatchRange{0, 26, 0})) << "an empty share";
  EXPECT_EQ(plan.range(9), (BatchRange{1, 0, 4}));
  EXPECT_EQ(plan.counts(), (std::vector<int64_t>{4, 1}));
}

TEST(BatchPlan, ABatchThatIsLargerThanTheDataHasAllOfThem) {
  const BatchPlan plan = BatchPlan::ofEpochs(5, 1'000'000, 1);
  EXPECT_EQ(plan.groupsPerEpoch(), 1u);
  EXPECT_EQ(plan.range(7), (BatchRange{7, 0, 5}));
  EXPECT_EQ(plan.counts(), (std::vector<int64_t>{5}));
  EXPECT_EQ(BatchPlan::ofEpochs(5, 100, 3).counts(), (std::vector<int64_t>{2, 1}));
}

// For any numbers of examples, batch size, workers and towers: each example counts once an epoch,
// and no share is larger than a batch.
TEST(BatchPlan, EveryExampleCountsOnceAnEpoch) {
  Random random(20261129);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const uint64_t examples = 1 + random.below(60), batch_size = 1 + random.below(20);
    const auto batches = static_cast<uint32_t>(1 + random.below(7));
    const uint64_t towers = 1 + random.below(4), epochs = 1 + random.below(3);
    const BatchPlan plan = BatchPlan::ofEpochs(examples, batch_size, batches);
    const std::vector<int64_t> counts = plan.counts();
    std::vector<std::vector<int>> used(epochs, std::vector<int>(examples));
    for (uint64_t number = 0; number < epochs * plan.groupsPerEpoch() * batches; ++number) {
      const BatchRange range = plan.range(number);
      ASSERT_LE(range.count, batch_size);
      if (range.count > 0) {
        EXPECT_NE(std::ranges::find(counts, static_cast<int64_t>(range.count)), counts.end());
      }
      for (uint64_t tower = 0; tower < towers; ++tower) {
        const Share share = evenShare(range.count, towers, tower);
        for (uint64_t i = 0; i < share.count; ++i)
          ++used.at(range.epoch).at(range.first + share.first + i);
      }
    }
    for (const std::vector<int>& epoch : used)
      EXPECT_TRUE(std::ranges::all_of(epoch, [](int times) { return times == 1; }));
    EXPECT_TRUE(std::ranges::is_sorted(counts, std::greater{}));
    EXPECT_LE(counts.size(), 3u);
  }
}

}  // namespace
}  // namespace dtf::cluster
