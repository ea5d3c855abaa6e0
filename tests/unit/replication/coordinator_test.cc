#include "common/replication/coordinator.h"

#include <gtest/gtest.h>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;

TEST(StalenessHistogram, CountsEachStalenessAndTheLongTailTogether) {
  StalenessHistogram histogram;
  for (const uint64_t staleness : {0u, 3u, 3u, 64u, 65u, 1000u}) histogram.add(staleness);
  EXPECT_EQ(histogram.counts[0], 1u);
  EXPECT_EQ(histogram.counts[3], 2u);
  EXPECT_EQ(histogram.counts[64], 3u) << "64 and more";
  EXPECT_EQ(histogram.sum, 1135u);
  EXPECT_EQ(histogram.max, 1000u);
}

TEST(MakeCoordinator, StepsAreSharedOnlyWhenTheJobIsSynchronous) {
  ShardDriver async(2, 0, 10);
  async.pull(0);
  EXPECT_EQ(async.push(0, 0)->state().global_step, 1u) << "applied on arrival";
  ShardDriver sync(2, 2, 10);
  sync.pull(0);
  EXPECT_TRUE(sync.push(0, 0)->waits()) << "for the other worker's gradient";
}

}  // namespace
}  // namespace dtf::replication
