#include "launcher/task_line.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

TEST(TaskLine, ALogLineLosesDateZoneAndTask) {
  const TaskLine line = readTaskLine(
      "2026-03-01T10:11:12.345+01:00 warning task=worker/1 event=checkpoint_failed retry_s=1");
  EXPECT_EQ(line.kind, LineKind::kAlarm);
  EXPECT_EQ(line.text, "10:11:12.345 warning event=checkpoint_failed retry_s=1");
}

TEST(TaskLine, InfoAndDebugAreDetails) {
  EXPECT_EQ(readTaskLine("2026-03-01T10:11:12.345-08:00 info task=ps/0 event=joined").kind,
            LineKind::kDetail);
  EXPECT_EQ(readTaskLine("2026-03-01T10:11:12.345+00:00 debug event=x").kind, LineKind::kDetail);
}

TEST(TaskLine, ProgressIsTheLaunchersToShow) {
  EXPECT_EQ(
      readTaskLine("2026-03-01T10:11:12.345+01:00 info task=worker/0 event=progress step=4").kind,
      LineKind::kProgress);
}

TEST(TaskLine, WhyATaskFailedIsTheLaunchersToReport) {
  const TaskLine line = readTaskLine(
      "2026-03-01T10:11:12.345+01:00 error task=worker/0 event=failed code=bad_config error=\"x");
  EXPECT_EQ(line.kind, LineKind::kFailed);
  EXPECT_EQ(line.text, "10:11:12.345 error event=failed code=bad_config error=\"x");
}

TEST(TaskLine, WhatIsNoLogLineIsShownAsItIs) {
  for (const char* text : {"common/shard/shard.cc:12: internal error: check failed: a > b",
                           "2026-03-01T10:11:12.345+01:00", "2026-03-01T10:11:12 info x",
                           "2026-03-01T10:11:12.345+01:00 loud x", ""}) {
    EXPECT_EQ(readTaskLine(text).kind, LineKind::kAlarm) << text;
    EXPECT_EQ(readTaskLine(text).text, text);
  }
}

TEST(TaskLine, IndentedLinesBelongToTheOneBefore) {
  EXPECT_EQ(readTaskLine("  softmax/weights  [784,10]").kind, LineKind::kMore);
}

}  // namespace dtf::launcher
