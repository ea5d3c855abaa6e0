// Tasks that don't end, or stand still, at the end of the job. Tasks: 0 = ps/0, 1 = worker/0, the
// chief, 2 = worker/1, all ready.

#include <gtest/gtest.h>

#include <csignal>

#include "launcher/task_monitor.h"

namespace dtf::launcher {

using std::chrono::seconds;

class TaskDeadlinesTest : public ::testing::Test {
 protected:
  TaskDeadlinesTest() {
    for (size_t task = 0; task < 3; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
  }
  void advance(Duration by) {
    clock_.advance(by);
    monitor_.onTime();
  }
  void expectDone() {
    EXPECT_TRUE(monitor_.finished());
    EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
    EXPECT_EQ(monitor_.jobExitCode(), 0);
  }

  ManualClock clock_;
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                       clock_,
                       {.restarts = RestartLimits{}}};
};

TEST_F(TaskDeadlinesTest, PsThatDoesNotEndAfterTheLastWorkerIsEndedAndTheJobIsDone) {
  monitor_.onExit(1, {0, 0});
  advance(seconds(609));
  EXPECT_FALSE(monitor_.stopping()) << "the other worker may take its time";
  monitor_.onExit(2, {0, 0});
  advance(seconds(31));
  EXPECT_TRUE(monitor_.endsTheRest());
  monitor_.onExit(0, {0, SIGTERM});
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
  EXPECT_EQ(monitor_.jobExitCode(), 0);
}

TEST_F(TaskDeadlinesTest, ChiefThatDoesNotEndAfterTheOtherWorkersIsNamed) {
  monitor_.onExit(2, {0, 0});
  advance(seconds(610));
  EXPECT_EQ(monitor_.rootCause()->what,
            "the workers have finished, but these tasks did not end in time: ps/0, worker/0");
  EXPECT_EQ(monitor_.jobExitCode(), 124);
}

TEST_F(TaskDeadlinesTest, WhoStandsStillBehindTheResultIsKilledAndHasNotFailed) {
  for (const size_t frozen : {0, 1, 2}) {
    TaskMonitor monitor{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                        clock_,
                        {.restarts = RestartLimits{.max = 0}}};
    for (size_t task = 0; task < 3; ++task) {
      monitor.onSpawned(task);
      monitor.onReady(task);
    }
    monitor.onResult(true);
    monitor.onSuspended(frozen, true);
    for (size_t task = 0; task < 3; ++task)
      if (task != frozen) monitor.onExit(task, {0, 0});
    clock_.advance(seconds(9));
    monitor.onTime();
    EXPECT_TRUE(monitor.takeOrders().empty()) << "a lease is not over";
    clock_.advance(seconds(2));
    monitor.onTime();
    EXPECT_EQ(monitor.takeOrders(), (std::vector<SignalOrder>{{frozen, SIGKILL}}));
    monitor.onExit(frozen, {0, SIGKILL});
    EXPECT_TRUE(monitor.finished());
    EXPECT_EQ(monitor.outcome(), Outcome::kDone) << frozen;
    EXPECT_EQ(monitor.jobExitCode(), 0);
  }
}

TEST_F(TaskDeadlinesTest, WhoNeverEndsBehindTheResultIsEndedAndHasNotFailed) {
  monitor_.onResult(true);
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(2, {0, 0});
  clock_.advance(seconds(31));
  monitor_.onTime();
  EXPECT_TRUE(monitor_.endsTheRest());
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{0, SIGTERM}}));
  clock_.advance(seconds(3));
  monitor_.onTime();
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{0, SIGKILL}}));
  monitor_.onExit(0, {0, SIGKILL});
  expectDone();
}

// The chief's lease was lost with the ps: only the launcher can end the wait for it.
TEST_F(TaskDeadlinesTest, AFrozenPsIsKilledWhileAWorkerIsOnItsWayBack) {
  monitor_.onExit(2, {0, 0});
  monitor_.onSuspended(0, true);
  monitor_.onExit(1, {0, SIGKILL});
  clock_.advance(seconds(1));
  ASSERT_EQ(monitor_.takeStarts(), std::vector<size_t>{1});
  monitor_.onSpawned(1);
  monitor_.onTime();
  clock_.advance(seconds(11));
  monitor_.onTime();
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{0, SIGKILL}}));
}

// A worker that learns from a large table says so as long as it goes on.
TEST(TaskDeadlines, AWorkerThatReadsItsDataHasTheTimeThatItTakes) {
  ManualClock clock;
  TaskMonitor monitor({{JobKind::kWorker, 0}}, clock, {});
  monitor.onStart();
  monitor.onSpawned(0);
  const auto passes = [&](Duration time) {
    clock.advance(time);
    monitor.onTime();
    return !monitor.stopping();
  };
  for (int minute = 0; minute < 10; ++minute) {
    monitor.onWaiting(0, "its data: t.csv, 90 GiB, 3 GiB read");
    EXPECT_TRUE(passes(seconds(59))) << minute;
  }
  monitor.onWaiting(0, "");
  EXPECT_TRUE(passes(seconds(59))) << "then it has the usual time";
  monitor.onWaiting(0, "worker/1");
  monitor.onWaiting(0, "");
  EXPECT_FALSE(passes(seconds(1))) << "which other waits don't prolong";
}

TEST(TaskDeadlines, AReadingThatStandsStillMeetsTheDeadline) {
  ManualClock clock;
  TaskMonitor monitor({{JobKind::kWorker, 0}}, clock, {});
  monitor.onStart();
  monitor.onSpawned(0);
  monitor.onWaiting(0, "its data: t.csv, 90 GiB, 3 GiB read");
  clock.advance(seconds(60));
  monitor.onTime();
  EXPECT_TRUE(monitor.stopping());
}

}  // namespace dtf::launcher
