#include "launcher/task_monitor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "launcher/progress.h"

// The decisions, on a manual clock and without processes. Tasks: 0 = ps/0, 1 = worker/0, 2 =
// worker/1.

namespace dtf::launcher {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TaskMonitorTest : public ::testing::Test {
 protected:
  TaskMonitorTest() {
    for (size_t task = 0; task < 3; ++task) monitor_.onSpawned(task);
  }
  void advance(Duration by) {
    clock_.advance(by);
    monitor_.onTime();
  }
  std::vector<SignalOrder> orders() { return monitor_.takeOrders(); }

  static MonitorLimits limits() {
    return {.start = seconds(60),
            .finish = seconds(100),
            .last = seconds(30),
            .grace = seconds(2),
            .settle = milliseconds(300)};
  }

  ManualClock clock_;
  TaskMonitor monitor_{
      {{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}}, clock_, limits()};
};

// The same tasks, all ready, of a job with checkpoints.
class SavingMonitorTest : public ::testing::Test {
 protected:
  SavingMonitorTest() {
    for (size_t task = 0; task < 3; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
  }
  void advance(Duration by) {
    clock_.advance(by);
    monitor_.onTime();
  }
  std::vector<SignalOrder> orders() { return monitor_.takeOrders(); }
  void interrupt() {
    monitor_.onStopRequest(SIGINT);
    EXPECT_TRUE(monitor_.saving());
    EXPECT_EQ(orders(), (std::vector<SignalOrder>{{1, SIGTERM}})) << "the chief, nobody else";
  }
  void expectInterrupted() {
    EXPECT_TRUE(monitor_.finished());
    EXPECT_EQ(monitor_.outcome(), Outcome::kInterrupted);
    EXPECT_EQ(monitor_.jobExitCode(), 130);
  }

  ManualClock clock_;
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                       clock_,
                       {.grace = seconds(2), .save = seconds(31), .settle = milliseconds(300)}};
};

TEST_F(TaskMonitorTest, JobIsDoneWhenEveryTaskHasExitedWithZero) {
  for (size_t task = 0; task < 3; ++task) monitor_.onReady(task);
  EXPECT_TRUE(monitor_.allReady());
  EXPECT_EQ(tasksUp(monitor_.facts(), JobKind::kWorker).up, 2u);
  for (size_t task = 0; task < 3; ++task) {
    EXPECT_FALSE(monitor_.finished());
    monitor_.onExit(task, {0, 0});
  }
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
  EXPECT_EQ(monitor_.jobExitCode(), 0);
  EXPECT_TRUE(orders().empty());
}

TEST_F(TaskMonitorTest, EarlyExitWithZeroIsFinishedNotFailed) {
  monitor_.onExit(2, {0, 0});
  advance(seconds(1));
  EXPECT_FALSE(monitor_.stopping());
  EXPECT_EQ(monitor_.state(2), TaskState::kDone);
}

TEST_F(TaskMonitorTest, FailureStopsTheOthersAndWhatFollowsIsDerived) {
  monitor_.onExit(1, {65, 0});
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{0, SIGTERM}, {2, SIGTERM}}));
  monitor_.onExit(2, {69, 0});
  monitor_.onExit(0, {0, SIGTERM});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.rootCause()->task, 1u);
  EXPECT_EQ(monitor_.jobExitCode(), 65);
  EXPECT_EQ(monitor_.state(2), TaskState::kStopped);
  EXPECT_EQ(monitor_.cause(2), "stopped because of worker/0");
  EXPECT_EQ(monitor_.cause(1), "worker/0 exited with code 65 (bad_data)");
}

TEST_F(TaskMonitorTest, PeerThatNoticesACrashFirstIsNotTheRootCause) {
  monitor_.onFailedNotice(1, {"unavailable", "lost ps/0"});
  monitor_.onExit(1, {69, 0});
  EXPECT_TRUE(orders().empty()) << "a cause may still show";
  advance(milliseconds(100));
  monitor_.onExit(0, {0, SIGSEGV});
  EXPECT_EQ(monitor_.rootCause()->task, 0u);
  EXPECT_EQ(monitor_.jobExitCode(), 128 + SIGSEGV);
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{2, SIGTERM}}));
  EXPECT_EQ(monitor_.cause(1), "worker/0 exited with code 69 (unavailable): lost ps/0");
}

TEST_F(TaskMonitorTest, LostPeerIsTheRootCauseWhenNothingElseShows) {
  monitor_.onFailedNotice(1, {"unavailable", "lost ps/0"});
  monitor_.onExit(1, {69, 0});
  advance(milliseconds(299));
  EXPECT_FALSE(monitor_.stopping());
  advance(milliseconds(1));
  EXPECT_TRUE(monitor_.stopping());
  EXPECT_EQ(monitor_.rootCause()->message, "lost ps/0");
  EXPECT_EQ(monitor_.jobExitCode(), 69);
}

TEST_F(TaskMonitorTest, FirstFailureInTimeWinsEvenIfItEndsLater) {
  monitor_.onFailedNotice(2, {"bad_data", "images are truncated"});
  clock_.advance(milliseconds(10));
  monitor_.onExit(1, {1, 0});
  EXPECT_EQ(monitor_.rootCause()->task, 2u);
  EXPECT_EQ(monitor_.jobExitCode(), 65) << "from the code it named";
  monitor_.onExit(2, {0, SIGTERM});
  EXPECT_EQ(monitor_.jobExitCode(), 65) << "our own SIGTERM is not its cause";
  EXPECT_EQ(monitor_.state(2), TaskState::kFailed);
}

TEST_F(TaskMonitorTest, TaskThatSaysItFailsAndStaysIsStillTheRootCause) {
  monitor_.onFailedNotice(1, {"training_failed", "loss is NaN at step 7"});
  advance(seconds(2));
  EXPECT_EQ(orders().size(), 3u);
  EXPECT_EQ(monitor_.rootCause()->what, "worker/0 failed (training_failed)");
  EXPECT_EQ(monitor_.jobExitCode(), 1);
}

TEST_F(TaskMonitorTest, KillFollowsTermAfterTheGraceAndGivingUpAfterAnother) {
  monitor_.onExit(1, {1, 0});
  orders();
  monitor_.onExit(0, {0, 0});
  advance(milliseconds(1999));
  EXPECT_TRUE(orders().empty());
  advance(milliseconds(1));
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{2, SIGKILL}}));
  advance(milliseconds(1999));
  EXPECT_FALSE(monitor_.finished());
  advance(milliseconds(1));
  EXPECT_TRUE(monitor_.finished()) << "even SIGKILL may not end a process that hangs in the kernel";
  EXPECT_EQ(monitor_.cause(2), "outlived SIGKILL; stopped because of worker/0");
}

TEST_F(TaskMonitorTest, InterruptStopsAndASecondOneKillsNow) {
  monitor_.onStopRequest(SIGINT);
  EXPECT_EQ(orders().size(), 3u);
  monitor_.onStopRequest(SIGINT);
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{0, SIGKILL}, {1, SIGKILL}, {2, SIGKILL}}));
  for (size_t task = 0; task < 3; ++task) monitor_.onExit(task, {0, SIGKILL});
  EXPECT_EQ(monitor_.outcome(), Outcome::kInterrupted);
  EXPECT_EQ(monitor_.jobExitCode(), 130);
  EXPECT_EQ(monitor_.cause(0), "stopped by SIGINT");
}

TEST_F(TaskMonitorTest, InterruptAfterAFailureDoesNotHideIt) {
  monitor_.onExit(1, {69, 0});
  monitor_.onStopRequest(SIGINT);
  EXPECT_EQ(monitor_.outcome(), Outcome::kFailed);
  EXPECT_EQ(monitor_.jobExitCode(), 69);
}

TEST_F(TaskMonitorTest, StartDeadlineNamesWhoIsMissing) {
  monitor_.onReady(0);
  advance(milliseconds(59999));
  EXPECT_FALSE(monitor_.stopping());
  advance(milliseconds(1));
  EXPECT_EQ(monitor_.rootCause()->what,
            "not ready within 60 s of its start (timeouts.start_seconds): worker/0, worker/1");
  EXPECT_EQ(monitor_.rootCause()->task, 1u);
  EXPECT_EQ(monitor_.jobExitCode(), 124);
  monitor_.onExit(1, {0, SIGTERM});
  EXPECT_EQ(monitor_.jobExitCode(), 124);
}

TEST_F(TaskMonitorTest, ErrorOfTheLauncherStopsTheJob) {
  monitor_.onError(std::nullopt, Error(ErrorCode::kCannotWrite, "disk full"));
  EXPECT_EQ(orders().size(), 3u);
  EXPECT_EQ(monitor_.jobExitCode(), 73);
  EXPECT_EQ(monitor_.cause(0), "outlived SIGKILL; stopped because dtf-launch failed");
}

TEST_F(SavingMonitorTest, InterruptAsksTheChiefAndTheJobEndsByItself) {
  interrupt();
  advance(seconds(30));
  EXPECT_FALSE(monitor_.stopping());
  for (const size_t task : {1, 2, 0}) monitor_.onExit(task, {0, 0});
  EXPECT_TRUE(orders().empty());
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kStopped) << "saved: not the same as interrupted";
  EXPECT_EQ(monitor_.jobExitCode(), 130) << "a shell script must end with its Ctrl-C";
  EXPECT_EQ(monitor_.state(1), TaskState::kDone);
}

TEST_F(SavingMonitorTest, TermThatHasTheJobSavedIsACleanEnd) {
  monitor_.onStopRequest(SIGTERM);
  EXPECT_EQ(monitor_.outcome(), Outcome::kInterrupted) << "not saved yet";
  for (const size_t task : {1, 2, 0}) monitor_.onExit(task, {0, 0});
  EXPECT_EQ(monitor_.outcome(), Outcome::kStopped);
  EXPECT_EQ(monitor_.jobExitCode(), 0);
}

TEST_F(SavingMonitorTest, AJobThatPausesWhenItIsToldToEndIsStoppedAsAnyOther) {
  monitor_.onStopRequest(SIGTERM);
  for (const size_t task : {2, 1, 0}) monitor_.onExit(task, {kPausedExitCode, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kStopped);
  EXPECT_EQ(monitor_.jobExitCode(), 0);
  EXPECT_EQ(monitor_.cause(1), "");
}

// kill -STOP of worker/1 in sync mode: worker/0 waits for its step, and is the first to report it.
TEST_F(TaskMonitorTest, SuspendedTaskIsTheCauseOfWhatItsPeersSuffer) {
  for (size_t task = 0; task < 3; ++task) monitor_.onReady(task);
  monitor_.onSuspended(2, true);
  EXPECT_EQ(monitor_.names(TaskMonitor::Named::kSuspended), "worker/1");
  advance(seconds(6));
  monitor_.onSuspended(2, true);
  monitor_.onFailedNotice(1, {"unavailable", "worker/1 was lost"});
  monitor_.onExit(1, {69, 0});
  advance(milliseconds(300));
  ASSERT_TRUE(monitor_.rootCause());
  EXPECT_EQ(monitor_.rootCause()->task, 2u);
  EXPECT_EQ(monitor_.rootCause()->what,
            "worker/1 has not run for 6 s: it is suspended (SIGSTOP, Ctrl-Z)");
  EXPECT_EQ(monitor_.rootCause()->message,
            "worker/0 exited with code 69 (unavailable): worker/1 was lost");
  EXPECT_EQ(monitor_.jobExitCode(), 69);
}

TEST_F(TaskMonitorTest, AFailureOfItsOwnIsNotBlamedOnASuspendedTask) {
  for (size_t task = 0; task < 3; ++task) monitor_.onReady(task);
  monitor_.onSuspended(2, true);
  monitor_.onExit(1, {65, 0});
  EXPECT_EQ(monitor_.rootCause()->task, 1u);
  EXPECT_EQ(monitor_.jobExitCode(), 65);
}

TEST_F(TaskMonitorTest, ATaskThatRunsAgainIsSuspendedNoLonger) {
  for (size_t task = 0; task < 3; ++task) monitor_.onReady(task);
  monitor_.onSuspended(2, true);
  monitor_.onSuspended(2, false);
  EXPECT_EQ(monitor_.names(TaskMonitor::Named::kSuspended), "");
  monitor_.onExit(1, {69, 0});
  advance(milliseconds(300));
  EXPECT_EQ(monitor_.rootCause()->task, 1u);
}

TEST_F(SavingMonitorTest, ChiefThatObeysTheSignalWithoutSavingIsNoFailure) {
  interrupt();
  monitor_.onExit(1, {128 + SIGTERM, 0});
  EXPECT_EQ(monitor_.state(1), TaskState::kStopped);
  EXPECT_EQ(monitor_.cause(1), "stopped by SIGINT");
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{0, SIGTERM}, {2, SIGTERM}}))
      << "the others have nobody to end the job for them";
  monitor_.onExit(0, {0, SIGTERM});
  monitor_.onExit(2, {69, 0});
  expectInterrupted();
}

TEST_F(SavingMonitorTest, ChiefThatTheSignalItselfEndsIsNoFailureEither) {
  interrupt();
  monitor_.onExit(1, {0, SIGTERM});
  monitor_.onExit(0, {0, 0});
  monitor_.onExit(2, {0, 0});
  expectInterrupted();
}

TEST_F(SavingMonitorTest, PeersThatSeeTheChiefGoFirstAreNotTheCause) {
  interrupt();
  monitor_.onFailedNotice(2, {"unavailable", "worker/0 was lost"});
  monitor_.onExit(2, {69, 0});
  monitor_.onExit(1, {128 + SIGTERM, 0});
  monitor_.onExit(0, {0, 0});
  expectInterrupted();
}

TEST_F(SavingMonitorTest, FailureOfAnotherTaskIsNotHiddenByTheChiefsEnd) {
  interrupt();
  monitor_.onFailedNotice(2, {"bad_data", "images are truncated"});
  monitor_.onExit(1, {128 + SIGTERM, 0});
  EXPECT_EQ(monitor_.rootCause()->task, 2u);
  EXPECT_EQ(monitor_.jobExitCode(), 65);
}

TEST_F(SavingMonitorTest, ChiefThatCannotSaveIsAFailure) {
  interrupt();
  monitor_.onFailedNotice(1, {"cannot_write", "its last checkpoint could not be written"});
  monitor_.onExit(1, {73, 0});
  EXPECT_EQ(monitor_.outcome(), Outcome::kFailed);
  EXPECT_EQ(monitor_.jobExitCode(), 73);
}

TEST_F(SavingMonitorTest, SignalThatNobodySentIsAFailure) {
  monitor_.onExit(1, {128 + SIGTERM, 0});
  EXPECT_EQ(monitor_.outcome(), Outcome::kFailed) << "the launcher was not asked to stop";
  EXPECT_EQ(monitor_.jobExitCode(), 143);
}

TEST_F(SavingMonitorTest, AtTheDeadlineOfSavingAllAreStopped) {
  interrupt();
  advance(seconds(30));
  EXPECT_TRUE(orders().empty());
  advance(seconds(1));
  EXPECT_FALSE(monitor_.saving());
  EXPECT_EQ(orders().size(), 3u);
  EXPECT_EQ(monitor_.outcome(), Outcome::kInterrupted);
  advance(seconds(2));
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{0, SIGKILL}, {1, SIGKILL}, {2, SIGKILL}}));
}

TEST_F(SavingMonitorTest, SecondInterruptKillsButOneThatArrivesTwiceIsOne) {
  interrupt();
  clock_.advance(milliseconds(249));
  monitor_.onStopRequest(SIGINT);
  EXPECT_TRUE(orders().empty());
  clock_.advance(milliseconds(1));
  monitor_.onStopRequest(SIGINT);
  EXPECT_FALSE(monitor_.saving());
  const std::vector<SignalOrder> all = orders();
  EXPECT_EQ(std::count(all.begin(), all.end(), SignalOrder{1, SIGKILL}), 1);
}

TEST_F(SavingMonitorTest, BeforeAllAreReadyNothingIsToBeSaved) {
  TaskMonitor monitor({{JobKind::kPs, 0}, {JobKind::kWorker, 0}}, clock_, {.save = seconds(31)});
  for (const size_t task : {0, 1}) monitor.onSpawned(task);
  monitor.onReady(1);
  monitor.onStopRequest(SIGINT);
  EXPECT_TRUE(monitor.stopping());
}

TEST_F(SavingMonitorTest, AJobThatHasItsResultIsDoneThoughItsRestIsInterrupted) {
  monitor_.onExit(1, ExitStatus{0, 0});
  monitor_.onStopRequest(SIGINT);
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{0, SIGTERM}, {2, SIGTERM}}));
  monitor_.onExit(2, ExitStatus{0, 0});
  monitor_.onExit(0, ExitStatus{128 + SIGTERM, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
  EXPECT_EQ(monitor_.jobExitCode(), 0);
}

TEST_F(SavingMonitorTest, AJobThatHasItsResultIsDoneThoughAWorkerIsToldToEnd) {
  monitor_.onExit(1, ExitStatus{0, 0});
  monitor_.onExit(2, ExitStatus{128 + SIGTERM, 0});
  monitor_.onExit(0, ExitStatus{0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(TaskMonitorTest, InterruptOfAJobWithoutCheckpointsStopsEverybody) {
  for (size_t task = 0; task < 3; ++task) monitor_.onReady(task);
  monitor_.onStopRequest(SIGINT);
  EXPECT_TRUE(monitor_.stopping());
  EXPECT_EQ(orders().size(), 3u);
}

TEST(TaskMonitor, TheStartDeadlineCountsFromTheStart) {
  ManualClock clock;
  TaskMonitor monitor({{JobKind::kPs, 0}}, clock, {});
  clock.advance(seconds(59));  // hosts were awaited
  monitor.onStart();
  clock.advance(milliseconds(59999));
  monitor.onTime();
  EXPECT_FALSE(monitor.stopping());
  clock.advance(milliseconds(1));
  monitor.onTime();
  EXPECT_TRUE(monitor.stopping());
}

// The same tasks, all ready, which serve clients.
class ServingMonitorTest : public ::testing::Test {
 protected:
  ServingMonitorTest() {
    for (size_t task = 0; task < 3; ++task) {
      serving_.onSpawned(task);
      serving_.onReady(task);
    }
  }
  ManualClock clock_;
  TaskMonitor serving_{
      {{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
      clock_,
      {.finish = seconds(100), .grace = seconds(2), .restarts = {.max = 3}, .serves = true}};
};

TEST_F(ServingMonitorTest, OneThatWasEndedEndsNobodyElse) {
  serving_.onExit(1, {0, 0});
  serving_.onExit(2, {0, 0});
  clock_.advance(seconds(1000));
  serving_.onTime();
  EXPECT_FALSE(serving_.stopping());
  EXPECT_FALSE(serving_.finished());
  EXPECT_TRUE(serving_.takeOrders().empty());
}

TEST_F(ServingMonitorTest, AskedToStopItIsStoppedAndNotInterrupted) {
  serving_.onStopRequest(SIGTERM);
  EXPECT_EQ(serving_.takeOrders().size(), 3u);
  for (size_t task = 0; task < 3; ++task) serving_.onExit(task, {task == 0 ? 143 : 0, 0});
  EXPECT_TRUE(serving_.finished());
  EXPECT_EQ(serving_.outcome(), Outcome::kStopped);
  EXPECT_EQ(serving_.jobExitCode(), 0);
}

TEST_F(ServingMonitorTest, APsThatIsSuspendedIsItsClientsBusiness) {
  serving_.onSuspended(0, true);
  clock_.advance(seconds(1000));
  serving_.onTime();
  EXPECT_TRUE(serving_.takeOrders().empty());
}

}  // namespace dtf::launcher
