// The texts of a TaskMonitor about its tasks.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {
namespace {

using std::chrono::seconds;

TEST(TaskWords, WhoIsNotReadyInTimeIsNamedWithWhatItAwaits) {
  ManualClock clock;
  TaskMonitor monitor({{JobKind::kPs, 0}, {JobKind::kWorker, 0}}, clock, {});
  monitor.onStart();
  for (const size_t task : {0, 1}) monitor.onSpawned(task);
  monitor.onWaiting(0, "worker/0");
  monitor.onWaiting(1, "its data: t.csv, 3.2 GiB\x1b[2J");
  EXPECT_EQ(monitor.names(TaskMonitor::Named::kNotReady),
            "ps/0 (awaits worker/0), worker/0 (awaits its data: t.csv, 3.2 GiB?[2J)")
      << "a task's words are harmless";
  monitor.onWaiting(0, "");
  monitor.onReady(0);
  clock.advance(seconds(60));
  monitor.onTime();
  ASSERT_TRUE(monitor.rootCause().has_value());
  EXPECT_EQ(monitor.rootCause()->what,
            "not ready within 60 s of its start (timeouts.start_seconds): worker/0 (awaits its "
            "data: t.csv, 3.2 GiB?[2J)");
}

TEST(TaskWords, ManyNamesAreCounted) {
  ManualClock clock;
  std::vector<TaskId> tasks;
  for (uint32_t i = 0; i < 10; ++i) tasks.push_back({JobKind::kPs, i});
  TaskMonitor monitor(tasks, clock, {});
  EXPECT_EQ(monitor.names(TaskMonitor::Named::kNotReady),
            "ps/0, ps/1, ps/2, ps/3, ps/4, ps/5, ps/6, ps/7 and 2 more");
}

}  // namespace
}  // namespace dtf::launcher
