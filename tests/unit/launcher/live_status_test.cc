#include "launcher/live_status.h"
#include "common/base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/process.h"

namespace dtf::launcher {

TEST(LiveStatus, TheSummaryOfManyTasksIsReadWhole) {
  const testing::TemporaryFolder folder;
  Json summary = {{"outcome", "done"}};
  for (int task = 0; task < 2000; ++task)
    summary["tasks"].push_back({{"name", "worker/" + std::to_string(task)}, {"exit_code", 0}});
  ASSERT_GT(summary.dump(2).size(), 65536u);
  folder.write("summary.json", summary.dump(2));
  EXPECT_EQ(readSummary(folder.path()), summary);
}

TEST(LiveStatus, WhatCannotBeReadIsEmpty) {
  const testing::TemporaryFolder folder;
  EXPECT_TRUE(readStatus(folder.path()).empty());
  folder.write("status.json", "[1]");
  EXPECT_TRUE(readStatus(folder.path()).empty());
  folder.write("status.json", "{\"step\":");
  EXPECT_TRUE(readStatus(folder.path()).empty());
}

}  // namespace dtf::launcher
