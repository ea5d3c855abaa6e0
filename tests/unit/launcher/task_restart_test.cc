// Which tasks TaskMonitor restarts, and the job's outcome. Tasks: 0 = ps/0, 1 = worker/0, 2 =
// worker/1, all ready.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "launcher/task_monitor.h"

namespace dtf::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ExitStatus kSigkill{0, SIGKILL};

class TaskRestartTest : public ::testing::Test {
 protected:
  TaskRestartTest() {
    for (size_t task = 0; task < 3; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
    clock_.advance(seconds(10));
  }
  void advance(Duration by) {
    clock_.advance(by);
    monitor_.onTime();
  }
  // Acts as a session: starts the task a little later.
  void startAgain(size_t task) {
    advance(milliseconds(200));
    ASSERT_EQ(monitor_.takeStarts(), std::vector<size_t>{task});
    monitor_.onSpawned(task);
  }
  std::vector<SignalOrder> orders() { return monitor_.takeOrders(); }

  ManualClock clock_;
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                       clock_,
                       {.start = seconds(60), .restarts = {.max = 3}}};
};

TEST_F(TaskRestartTest, AWorkerThatIsKilledIsStartedAgainAndTheJobGoesOn) {
  monitor_.onExit(2, kSigkill);
  EXPECT_EQ(monitor_.state(2), TaskState::kWaiting);
  EXPECT_EQ(monitor_.restartText(2).substr(0, 60),
            "worker/1 was killed by SIGKILL (signal 9): starting it again");
  EXPECT_TRUE(monitor_.takeStarts().empty()) << "after a pause";
  EXPECT_EQ(monitor_.restarts(2), 0u) << "it is still to come";
  EXPECT_EQ(monitor_.processIndex(2), 1u);
  startAgain(2);
  monitor_.onReady(2);
  EXPECT_TRUE(orders().empty()) << "nobody else is disturbed";
  for (size_t task = 0; task < 3; ++task) monitor_.onExit(task, {0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
  EXPECT_EQ(monitor_.restarts(2), 1u);
}

TEST_F(TaskRestartTest, APsThatIsKilledIsStartedAgain) {
  monitor_.onExit(0, kSigkill);
  EXPECT_EQ(monitor_.state(0), TaskState::kWaiting);
  startAgain(0);
  monitor_.onReady(0);
  EXPECT_TRUE(orders().empty()) << "its workers wait for it";
  EXPECT_EQ(monitor_.restarts(0), 1u);
}

TEST_F(TaskRestartTest, APsThatIsFrozenBeyondTheLeaseIsKilledToBeStartedAgain) {
  monitor_.onSuspended(0, true);
  advance(seconds(1));
  advance(seconds(9));
  EXPECT_TRUE(orders().empty());
  advance(seconds(2));
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{0, SIGKILL}}));
  monitor_.onExit(0, kSigkill);
  EXPECT_EQ(monitor_.state(0), TaskState::kWaiting);
}

// A machine that sleeps, or a user who stops all tasks: no task misses another.
TEST_F(TaskRestartTest, AJobThatIsFrozenAsAWholeLosesNoPs) {
  for (size_t task = 0; task < 3; ++task) monitor_.onSuspended(task, true);
  for (int i = 0; i < 30; ++i) advance(seconds(1));
  monitor_.onSuspended(1, false);
  for (int i = 0; i < 5; ++i) advance(seconds(1));
  EXPECT_TRUE(orders().empty());
  monitor_.onSuspended(0, false);
  for (int i = 0; i < 30; ++i) advance(seconds(1));
  EXPECT_TRUE(orders().empty());
}

// A step needs two of three workers.
class SpareWorkerTest : public ::testing::Test {
 protected:
  SpareWorkerTest() {
    for (size_t task = 0; task < 4; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
    clock_.advance(seconds(10));
  }

  ManualClock clock_;
  TaskMonitor monitor_{
      {{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}, {JobKind::kWorker, 2}},
      clock_,
      {.start = seconds(60), .restarts = {.max = 0}, .spares = 1}};
};

TEST_F(SpareWorkerTest, ItsDeathIsNoFailure) {
  monitor_.onExit(3, kSigkill);
  clock_.advance(seconds(5));
  monitor_.onTime();
  EXPECT_FALSE(monitor_.stopping());
  EXPECT_EQ(monitor_.state(3), TaskState::kMissed);
  EXPECT_EQ(monitor_.cause(3), "worker/2 was killed by SIGKILL (signal 9)");
  for (const size_t task : {1u, 2u}) monitor_.onExit(task, {0, 0});
  clock_.advance(seconds(20));
  monitor_.onTime();
  EXPECT_FALSE(monitor_.stopping()) << "the last worker has just ended";
  clock_.advance(seconds(11));
  monitor_.onTime();
  EXPECT_TRUE(monitor_.stopping()) << "and nobody waits for the one that is missed";
}

TEST_F(SpareWorkerTest, TheJobIsDoneWithoutIt) {
  monitor_.onExit(3, kSigkill);
  for (const size_t task : {1u, 2u, 0u}) monitor_.onExit(task, {0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
  EXPECT_EQ(monitor_.jobExitCode(), 0);
}

TEST_F(SpareWorkerTest, NobodyIsWaitedForWhenItDiesLast) {
  for (const size_t task : {1u, 2u}) monitor_.onExit(task, {0, 0});
  monitor_.onExit(3, kSigkill);
  clock_.advance(seconds(31));
  monitor_.onTime();
  EXPECT_TRUE(monitor_.stopping()) << "the ps has not ended in time";
}

TEST_F(SpareWorkerTest, OneThatIsFrozenIsKilledAndMissed) {
  monitor_.onLost(3, 0);
  monitor_.onLost(2, 0);  // frozen together, but only one can be spared
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{3, SIGKILL}}));
  monitor_.onExit(3, kSigkill);
  EXPECT_EQ(monitor_.state(3), TaskState::kMissed);
  monitor_.onLost(2, 0);
  EXPECT_TRUE(monitor_.takeOrders().empty()) << "without a budget nobody takes its place";
}

TEST_F(SpareWorkerTest, WhoeverDiesAfterTheChiefHasItsResultTakesNothingFromTheJob) {
  monitor_.onExit(3, kSigkill);
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(2, kSigkill);  // no spare, and no budget
  EXPECT_FALSE(monitor_.stopping());
  monitor_.onExit(0, {0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(SpareWorkerTest, NoMoreAreSparedThanThereAre) {
  monitor_.onExit(3, kSigkill);
  monitor_.onExit(2, kSigkill);
  EXPECT_TRUE(monitor_.stopping());
  EXPECT_EQ(monitor_.rootCause()->task, 2u);
}

TEST_F(SpareWorkerTest, NeitherTheChiefNorAPsIsOne) {
  monitor_.onExit(1, kSigkill);
  EXPECT_EQ(monitor_.rootCause()->task, 1u);
}

TEST_F(SpareWorkerTest, OneThatSaysThatItsDataAreWrongEndsTheJob) {
  monitor_.onExit(3, {65, 0});
  EXPECT_EQ(monitor_.rootCause()->task, 3u);
}

// The lost task is the cause, and the history names tasks that had died before.
TEST_F(TaskRestartTest, APsThatGivesUpItsPeersEndsTheJob) {
  monitor_.onExit(0, {69, 0});
  advance(seconds(1));
  EXPECT_EQ(monitor_.rootCause()->task, 0u);
  EXPECT_EQ(monitor_.jobExitCode(), 69);
}

TEST_F(TaskRestartTest, APsThatFailsForGoodEndsTheJobAndTheRestartsThatAreDue) {
  monitor_.onExit(2, {69, 0});
  EXPECT_EQ(monitor_.state(2), TaskState::kWaiting);
  monitor_.onExit(0, {78, 0});
  EXPECT_EQ(monitor_.rootCause()->task, 0u);
  EXPECT_EQ(monitor_.state(2), TaskState::kStopped);
  EXPECT_TRUE(monitor_.takeStarts().empty());
}

TEST_F(TaskRestartTest, APsThatIsKilledWhenTheChiefHasFinishedTakesNothingFromTheJob) {
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(0, kSigkill);
  monitor_.onExit(2, {69, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(TaskRestartTest, APsThatIsBackWhenAllHaveFinishedTakesNothingFromTheJob) {
  monitor_.onExit(0, kSigkill);
  startAgain(0);
  monitor_.onReady(0);
  monitor_.onExit(2, {0, 0});
  monitor_.onExit(1, {0, 0});
  monitor_.onFailedNotice(0, {"unavailable", "a worker is missing: worker/1"});
  monitor_.onExit(0, {69, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(TaskRestartTest, ARestartThatNeverCameIsNotCounted) {
  monitor_.onExit(2, kSigkill);
  monitor_.onExit(0, {65, 0});  // ends the job
  EXPECT_EQ(monitor_.state(2), TaskState::kStopped);
  EXPECT_EQ(monitor_.restarts(2), 0u);
}

TEST_F(TaskRestartTest, AWorkerThatFailsForGoodEndsTheJob) {
  monitor_.onFailedNotice(2, {"bad_data", "images are truncated"});
  monitor_.onExit(2, {65, 0});
  EXPECT_EQ(monitor_.state(2), TaskState::kFailed);
  EXPECT_EQ(monitor_.jobExitCode(), 65);
}

TEST_F(TaskRestartTest, WhoHasUsedUpItsRestartsIsTheCauseWithItsHistory) {
  for (int i = 0; i < 3; ++i) {
    monitor_.onExit(2, kSigkill);
    advance(seconds(2));
    ASSERT_EQ(monitor_.takeStarts(), std::vector<size_t>{2});
    monitor_.onSpawned(2);
    monitor_.onReady(2);
  }
  monitor_.onExit(2, kSigkill);
  EXPECT_EQ(monitor_.rootCause()->what,
            "worker/1 was killed by SIGKILL (signal 9), after it was started again 3 times");
  EXPECT_EQ(monitor_.jobExitCode(), 137);
  EXPECT_EQ(monitor_.restartHistory(),
            (std::vector<std::string>{
                "worker/1 3 times, the last after it was killed by SIGKILL (signal 9)"}));
}

// A chief reports that it finds no values any more; the reason is a task that was lost before.
TEST_F(TaskRestartTest, TheHistoryIsOfAllTasksNotOfTheCauseAlone) {
  EXPECT_TRUE(monitor_.restartHistory().empty());
  monitor_.onExit(2, {69, 0});
  EXPECT_TRUE(monitor_.restartHistory().empty()) << "not yet";
  startAgain(2);
  monitor_.onReady(2);
  monitor_.onExit(1, {65, 0});
  EXPECT_EQ(monitor_.rootCause()->task, 1u);
  EXPECT_EQ(
      monitor_.restartHistory(),
      (std::vector<std::string>{"worker/1 once, after it exited with code 69 (unavailable)"}));
}

TEST_F(TaskRestartTest, AFailureThatWasSaidAndThenMendedIsNotJudgedLater) {
  monitor_.onFailedNotice(2, {"unavailable", "fenced"});
  monitor_.onExit(2, {69, 0});
  startAgain(2);
  monitor_.onReady(2);
  advance(seconds(10));
  EXPECT_FALSE(monitor_.stopping());
}

TEST_F(TaskRestartTest, ATaskThatIsNotReadyAgainInTimeEndsTheJob) {
  advance(seconds(600));
  monitor_.onExit(2, kSigkill);
  startAgain(2);
  advance(seconds(59));
  EXPECT_FALSE(monitor_.stopping());
  advance(seconds(1));
  EXPECT_TRUE(monitor_.stopping());
  EXPECT_EQ(monitor_.rootCause()->task, 2u);
}

TEST_F(TaskRestartTest, AJobThatFinishesMeanwhileDoesNotWaitForTheLostWorker) {
  monitor_.onExit(2, kSigkill);
  monitor_.onExit(1, {0, 0});
  EXPECT_EQ(monitor_.state(2), TaskState::kStopped);
  monitor_.onExit(0, {0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(TaskRestartTest, WhoComesBackWhenTheOthersHaveFinishedHasNotFailed) {
  monitor_.onExit(2, kSigkill);
  startAgain(2);
  monitor_.onExit(1, {0, 0});
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{2, SIGKILL}})) << "nobody is left for it";
  monitor_.onExit(0, {0, 0});
  monitor_.onFailedNotice(2, {"unavailable", "cannot reach ps/0"});
  monitor_.onExit(2, {69, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(TaskRestartTest, WhoIsKilledWhenTheChiefHasFinishedTakesNothingFromTheJob) {
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(2, kSigkill);
  monitor_.onExit(0, {0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

// Restarting it would not help against the task that keeps it waiting.
TEST_F(TaskRestartTest, AWorkerThatWaitedInVainEndsTheJob) {
  monitor_.onFailedNotice(1, {"deadline", "waited 65 s in a step for worker/1 in step 7"});
  monitor_.onExit(1, {124, 0});
  advance(seconds(1));
  EXPECT_EQ(monitor_.jobExitCode(), 124);
}

TEST_F(TaskRestartTest, AFrozenPsIsTheCauseOfWhatItsWorkersSuffer) {
  monitor_.onSuspended(0, true);
  advance(seconds(10));
  for (const size_t worker : {1, 2}) monitor_.onExit(worker, {69, 0});
  advance(seconds(1));
  EXPECT_EQ(monitor_.rootCause()->task, 0u);
}

TEST_F(TaskRestartTest, WhatATaskHasSaidOfItsFailureCountsMoreThanTheSignalThatEndedIt) {
  monitor_.onFailedNotice(2, {"training_failed", "training has diverged"});
  monitor_.onLost(2, 0);
  EXPECT_TRUE(orders().empty());
  monitor_.onExit(2, kSigkill);
  EXPECT_EQ(monitor_.state(2), TaskState::kFailed);
}

TEST_F(TaskRestartTest, AFrozenWorkerThatAPsHasGivenUpIsKilledOnce) {
  monitor_.onLost(2, 0);
  EXPECT_EQ(orders(), (std::vector<SignalOrder>{{2, SIGKILL}}));
  monitor_.onExit(2, kSigkill);
  startAgain(2);
  monitor_.onLost(2, 0);  // another ps reports it later
  EXPECT_TRUE(orders().empty()) << "that was the process before";
}

TEST_F(TaskRestartTest, StoppingTheJobStartsNobodyAgain) {
  monitor_.onExit(2, kSigkill);
  monitor_.onStopRequest(SIGINT);
  advance(seconds(1));
  EXPECT_TRUE(monitor_.takeStarts().empty());
  EXPECT_EQ(monitor_.state(2), TaskState::kStopped);
}

}  // namespace
}  // namespace dtf::launcher
