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
}

}  // namespace dtf
