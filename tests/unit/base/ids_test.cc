#include "common/base/ids.h"

#include <gtest/gtest.h>

namespace dtf {

TEST(TaskId, NamesAndDeviceStringsAreTensorFlows) {
  const TaskId task{JobKind::kPs, 1};
  EXPECT_EQ(task.name(), "ps/1");
  EXPECT_EQ(task.device(), "/job:ps/task:1");
  EXPECT_EQ(kChief.name(), "worker/0");
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
  // One of them counted, or both alike.
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
