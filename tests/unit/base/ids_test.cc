#include "common/base/ids.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(TaskId, NamesAndDeviceStringsAreTensorFlows) {
  const TaskId task{JobKind::kPs, 1};
  EXPECT_EQ(task.name(), "ps/1");
  EXPECT_EQ(task.device(), "/job:ps/task:1");
  EXPECT_EQ(kChief.name(), "worker/0");
}

TEST(ShardHosts, ThePsComeFirstThenTheWorkers) {
  const ShardHosts hosts{2, 3};
  EXPECT_EQ(hosts.size(), 5u);
  EXPECT_EQ(hosts.of(1), (TaskId{JobKind::kPs, 1}));
  EXPECT_EQ(hosts.of(2), (TaskId{JobKind::kWorker, 0}));
  EXPECT_EQ(hosts.noun(), "ps and workers");
  for (uint32_t shard = 0; shard < hosts.size(); ++shard)
    EXPECT_EQ(hosts.shardOf(hosts.of(shard)), shard);
  EXPECT_EQ(hosts.shardOf({JobKind::kPs, 2}), std::nullopt);
  EXPECT_EQ(hosts.shardOf({JobKind::kWorker, 3}), std::nullopt);
}

TEST(ShardHosts, TheLeaderHostsShardZero) {
  const ShardHosts hosts{0, 3, 2};
  EXPECT_EQ(hosts.of(0).name(), "worker/2");
  EXPECT_EQ(hosts.of(1).name(), "worker/1");
  EXPECT_EQ(hosts.of(2).name(), "worker/0");
  for (uint32_t shard = 0; shard < hosts.size(); ++shard)
    EXPECT_EQ(hosts.shardOf(hosts.of(shard)), shard);
}

TEST(ShardHosts, OfOneKindHaveItsNumbers) {
  EXPECT_EQ(ShardHosts{}.of(7).name(), "ps/7");
  EXPECT_EQ((ShardHosts{2, 0}.of(1).name()), "ps/1");
  EXPECT_EQ((ShardHosts{2, 0}.noun()), "ps");
  EXPECT_EQ((ShardHosts{0, 2}.of(1).name()), "worker/1");
  EXPECT_EQ((ShardHosts{0, 2}.noun()), "workers");
  EXPECT_EQ((ShardHosts{2, 0}.shardOf({JobKind::kWorker, 0})), std::nullopt);
}

TEST(JobKind, ParsesItsOwnNamesOnly) {
  EXPECT_EQ(parseJobName("ps"), JobKind::kPs);
  EXPECT_EQ(parseJobName("worker"), JobKind::kWorker);
  EXPECT_EQ(parseJobName("wroker"), std::nullopt);
}

TEST(Incarnation, DiffersPerStart) {
  EXPECT_NE(Incarnation::ofNow(), Incarnation::ofNow());
  EXPECT_NE(Incarnation::ofNow().value, 0u);
  EXPECT_EQ(Incarnation::ofNow().attempt(), 0u);
}

TEST(Incarnation, AttemptsAreOrderedWhateverIsRandomInThem) {
  for (int i = 0; i < 100; ++i) {
    const Incarnation first = Incarnation::ofNow(1);
    const Incarnation second = Incarnation::ofNow(2);
    EXPECT_EQ(second.attempt(), 2u);
    EXPECT_TRUE(first.isBefore(second));
    EXPECT_FALSE(second.isBefore(first));
    EXPECT_LT(first, second);
  }
}

TEST(Incarnation, WhereNobodyCountsTheTimeOfDayTellsWhoStartedFirst) {
  const Incarnation first = Incarnation::of(0, 100, 9);
  const Incarnation second = Incarnation::of(0, 101, 3);
  EXPECT_TRUE(first.isBefore(second));
  EXPECT_FALSE(second.isBefore(first));
  EXPECT_FALSE(first.isCountedBefore(second)) << "clocks may be set back; counts are not";
  // A count and a clock, or two equal counts, compare by the clock.
  EXPECT_TRUE(first.isBefore(Incarnation::of(3, 101, 0)));
  EXPECT_TRUE(Incarnation::of(3, 100, 0).isBefore(second));
  EXPECT_TRUE(Incarnation::of(3, 100, 0).isBefore(Incarnation::of(3, 101, 0)));
  EXPECT_FALSE(Incarnation::of(4, 100, 0).isBefore(Incarnation::of(3, 101, 0)));
}

TEST(Incarnation, OfOneTickNoneIsBeforeTheOther) {
  EXPECT_FALSE(Incarnation::of(0, 100, 1).isBefore(Incarnation::of(0, 100, 2)));
  EXPECT_FALSE(Incarnation::of(0, 100, 2).isBefore(Incarnation::of(0, 100, 1)));
}

TEST(Incarnation, IsOfTheTimeOfDay) {
  const Incarnation before = Incarnation::ofNow();
  const Incarnation after = Incarnation::ofNow(Incarnation::kAttemptMax);
  EXPECT_FALSE(Incarnation::of(0, after.ticks(), 0).isBefore(before));
  EXPECT_EQ(after.attempt(), Incarnation::kAttemptMax);
  EXPECT_GT(before.ticks(), uint64_t{256} * 60 * 60 * 24 * 365 * 6) << "2026 or later";
}

}  // namespace dtf
