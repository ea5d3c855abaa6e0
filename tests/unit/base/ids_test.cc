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
  EXPECT_NE(Incarnation::random(), Incarnation::random());
  EXPECT_NE(Incarnation::random().value, 0u);
  EXPECT_EQ(Incarnation::random().attempt(), 0u);
}

TEST(Incarnation, AttemptsAreOrderedWhateverIsRandomInThem) {
  for (int i = 0; i < 100; ++i) {
    const Incarnation first = Incarnation::random(1);
    const Incarnation second = Incarnation::random(2);
    EXPECT_EQ(second.attempt(), 2u);
    EXPECT_TRUE(first.isBefore(second));
    EXPECT_FALSE(second.isBefore(first));
    EXPECT_LT(first, second);
  }
}

TEST(Incarnation, WhereNobodyCountsNoneIsBeforeAnother) {
  EXPECT_FALSE(Incarnation::random().isBefore(Incarnation::random(3)));
  EXPECT_FALSE(Incarnation::random(3).isBefore(Incarnation::random()));
  EXPECT_FALSE(Incarnation::random(3).isBefore(Incarnation::random(3)));
}

}  // namespace dtf
