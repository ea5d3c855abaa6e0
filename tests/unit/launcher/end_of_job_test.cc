#include "launcher/end_of_job.h"

#include <gtest/gtest.h>

#include <csignal>

#include "common/base/error.h"
#include "launcher/task_monitor.h"

// Tasks: 0 = ps/0, 1 = worker/0, the chief, 2 = worker/1.

namespace dtf::launcher {

using std::chrono::seconds;

namespace {

std::vector<TaskFacts> factsOf(TaskState ps, TaskState chief, TaskState worker) {
  return {{{JobKind::kPs, 0}, ps}, {{JobKind::kWorker, 0}, chief}, {{JobKind::kWorker, 1}, worker}};
}

TEST(EndOfJob, AChiefThatIsDoneEndsTheJob) {
  using enum TaskState;
  EXPECT_TRUE(isChiefDone(factsOf(kReady, kDone, kReady)));
  EXPECT_FALSE(isChiefDone(factsOf(kDone, kReady, kDone)));
}

TEST(EndOfJob, WorkersFinishOrAreGone) {
  using enum TaskState;
  EXPECT_TRUE(hasAWorkerFinished(factsOf(kReady, kReady, kDone)));
  EXPECT_FALSE(hasAWorkerFinished(factsOf(kDone, kReady, kStopped)));
  EXPECT_TRUE(haveAllWorkersGone(factsOf(kReady, kDone, kMissed)));
  EXPECT_FALSE(haveAllWorkersGone(factsOf(kDone, kWaiting, kDone))) << "it comes back";
}

TEST(EndOfJob, OthersHaveFinishedWithZeroOrCouldBeSpared) {
  using enum TaskState;
  EXPECT_TRUE(haveOthersFinished(factsOf(kDone, kReady, kDone), 1));
  EXPECT_TRUE(haveOthersFinished(factsOf(kDone, kWaiting, kMissed), 1));
  EXPECT_FALSE(haveOthersFinished(factsOf(kReady, kReady, kDone), 1));
  EXPECT_FALSE(haveOthersFinished(factsOf(kDone, kReady, kFailed), 1));
  EXPECT_FALSE(haveOthersFinished(factsOf(kDone, kDone, kReady), 2)) << "no chief";
  EXPECT_FALSE(haveOthersFinished(std::vector<TaskFacts>{{{JobKind::kWorker, 0}, kReady}}, 0))
      << "nobody has said that it is over";
}

struct VerdictCase {
  const char* name;
  std::vector<TaskFacts> tasks;
  JobPhase phase;
  size_t task;
  ProcessEnd end;
  Verdict verdict;
};

TEST(EndOfJob, WhatTheEndOfAProcessMeans) {
  using enum TaskState;
  const std::vector<TaskFacts> training = factsOf(kReady, kReady, kReady);
  const std::vector<TaskFacts> chief_done = factsOf(kReady, kDone, kReady);
  const std::vector<TaskFacts> others_done = factsOf(kDone, kReady, kDone);
  const JobPhase result{.has_result = true}, serves{.serves = true};
  const ExitStatus killed{0, SIGKILL}, told{128 + SIGTERM, 0}, peers_gone{69, 0}, bad_data{65, 0};
  const VerdictCase cases[] = {
      {"it has finished", training, {}, 2, {{0, 0}}, Verdict::kDone},
      {"a pause that was asked for", training, {.saves = true}, 0, {{75, 0}}, Verdict::kDone},
      {"a pause that nobody asked for", training, {}, 0, {{75, 0}}, Verdict::kFailed},
      {"killed while it trains", training, {}, 1, {killed}, Verdict::kFailed},
      {"ended with the others", training, {.stops = true}, 2, {killed}, Verdict::kStopped},
      {"it is why all are ended",
       training,
       {.stops = true},
       2,
       {killed, true, true},
       Verdict::kFailed},
      {"killed behind the chief's end", chief_done, {}, 0, {killed}, Verdict::kStopped},
      {"told to end behind the chief's end", chief_done, {}, 2, {told}, Verdict::kStopped},
      {"its peers have gone with the chief",
       chief_done,
       {},
       2,
       {peers_gone, true},
       Verdict::kStopped},
      {"a failure of its own behind the chief's end",
       chief_done,
       {},
       2,
       {bad_data, true},
       Verdict::kStopped},
      {"the chief is killed behind its result", training, result, 1, {killed}, Verdict::kDone},
      {"the chief lost a ps behind its result",
       training,
       result,
       1,
       {peers_gone, true},
       Verdict::kDone},
      {"a ps is killed behind the result", training, result, 0, {killed}, Verdict::kStopped},
      {"a failure of its own behind the result",
       training,
       result,
       0,
       {bad_data, true},
       Verdict::kStopped},
      {"a failure of the chief's own behind its result",
       training,
       result,
       1,
       {bad_data, true},
       Verdict::kDone},
      {"the chief is killed when all have left", others_done, {}, 1, {killed}, Verdict::kDone},
      {"it had said why", others_done, {}, 1, {killed, true}, Verdict::kFailed},
      {"a service has no result", others_done, serves, 1, {killed}, Verdict::kFailed},
  };
  for (const VerdictCase& one : cases)
    EXPECT_EQ(verdict(one.tasks, one.phase, one.task, one.end), one.verdict) << one.name;
}

TEST(EndOfJob, FinishedWorkersAreThoseThatHaveEndedWithZero) {
  using enum TaskState;
  EXPECT_EQ(finishedWorkers(factsOf(kDone, kReady, kDone)), std::vector<uint32_t>{1});
  EXPECT_TRUE(finishedWorkers(factsOf(kDone, kWaiting, kMissed)).empty());
}

TEST(EndOfJob, AWorkerThatHasFinishedMayStillHostAShard) {
  using enum TaskState;
  std::vector<TaskFacts> tasks = factsOf(kReady, kReady, kReady);
  tasks[2].has_finished = true;
  EXPECT_EQ(finishedWorkers(tasks), std::vector<uint32_t>{1});
  EXPECT_TRUE(hasAWorkerFinished(tasks));
  EXPECT_FALSE(haveAllWorkersGone(tasks));
  tasks[1].has_finished = true;
  EXPECT_TRUE(haveAllWorkersGone(tasks));
  EXPECT_FALSE(haveOthersFinished(tasks, 1)) << "their processes are there";
  EXPECT_FALSE(isChiefDone(tasks));
}

// A job without ps: each of three workers hosts a shard, one is a backup worker.
class WorkersHostTest : public ::testing::Test {
 protected:
  WorkersHostTest() {
    for (size_t task = 0; task < 3; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
  }

  ManualClock clock_;
  TaskMonitor monitor_{{{JobKind::kWorker, 0}, {JobKind::kWorker, 1}, {JobKind::kWorker, 2}},
                       clock_,
                       {.restarts = RestartLimits{.max = 1}, .spares = 1, .workers_host = true}};
};

TEST_F(WorkersHostTest, AWorkerOnItsWayBackIsTooLateForTheResultAndTheOthersEnd) {
  monitor_.onExit(1, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(1), TaskState::kWaiting);
  monitor_.onResult(true);
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{0, SIGTERM}, {2, SIGTERM}}))
      << "they would wait for its shard";
  monitor_.onExit(0, {0, 0});
  monitor_.onExit(2, {0, 0});
  EXPECT_TRUE(monitor_.finished());
  EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
}

TEST_F(WorkersHostTest, AFinishedWorkerIsKnownToTheProcessesThatAreStartedAgain) {
  monitor_.onFinished(1);
  monitor_.onFinished(2);
  EXPECT_EQ(finishedWorkers(monitor_.facts()), (std::vector<uint32_t>{1, 2}));
  monitor_.onExit(1, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(1), TaskState::kWaiting) << "the chief needs its shard";
  EXPECT_EQ(finishedWorkers(monitor_.facts()), std::vector<uint32_t>{2})
      << "its next process has not finished";
}

TEST_F(WorkersHostTest, TheFirstWorkerThatFinishesSetsADeadlineTheLastACloserOne) {
  monitor_.onFinished(1);
  clock_.advance(seconds(100));
  monitor_.onTime();
  EXPECT_FALSE(monitor_.stopping());
  monitor_.onFinished(2);
  monitor_.onFinished(0);
  clock_.advance(seconds(31));
  monitor_.onTime();
  EXPECT_EQ(monitor_.rootCause()->what,
            "the workers have finished, but these tasks did not end in time: worker/0, worker/1, "
            "worker/2");
}

TEST_F(WorkersHostTest, NoWorkerCanBeSpared) {
  monitor_.onExit(1, {0, SIGKILL});
  clock_.advance(std::chrono::seconds(10));
  monitor_.onTime();
  EXPECT_EQ(monitor_.takeStarts(), std::vector<size_t>{1});
  monitor_.onSpawned(1);
  monitor_.onExit(1, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(1), TaskState::kFailed);
}

}  // namespace

// A monitor with limits that allow restarts.
class RestartingMonitorTest : public ::testing::Test {
 protected:
  RestartingMonitorTest() {
    for (size_t task = 0; task < 3; ++task) {
      monitor_.onSpawned(task);
      monitor_.onReady(task);
    }
  }
  void expectDone() {
    EXPECT_TRUE(monitor_.finished());
    EXPECT_EQ(monitor_.outcome(), Outcome::kDone);
    EXPECT_EQ(monitor_.jobExitCode(), 0);
    EXPECT_TRUE(monitor_.takeStarts().empty());
  }

  ManualClock clock_;
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                       clock_,
                       {.restarts = RestartLimits{}}};
};

// The training is over and saved, else the others would not have ended with 0.
TEST_F(RestartingMonitorTest, AChiefThatIsKilledWhenAllOthersHaveFinishedWasAtItsEnd) {
  monitor_.onExit(0, {0, 0});
  monitor_.onExit(2, {0, 0});
  EXPECT_FALSE(monitor_.finished());
  monitor_.onExit(1, {0, SIGKILL});
  expectDone();
}

TEST_F(RestartingMonitorTest, AChiefThatWaitsForItsRestartMeanwhileIsNotStartedAgain) {
  monitor_.onExit(2, {0, 0});
  monitor_.onExit(1, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(1), TaskState::kWaiting) << "the ps may want it";
  monitor_.onExit(0, {0, 0});
  expectDone();
}

TEST_F(RestartingMonitorTest, AChiefThatIsBackMeanwhileIsEnded) {
  monitor_.onExit(2, {0, 0});
  monitor_.onExit(1, {0, SIGKILL});
  clock_.advance(seconds(31));
  ASSERT_EQ(monitor_.takeStarts(), std::vector<size_t>{1});
  monitor_.onSpawned(1);
  monitor_.onExit(0, {0, 0});
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{1, SIGKILL}}));
  monitor_.onExit(1, {0, SIGKILL});
  expectDone();
}

// For example, it could not write the last checkpoint when all others had left.
TEST_F(RestartingMonitorTest, AChiefThatFailsInItsOwnWordsHasFailed) {
  for (const int code : {65, exitCode(ErrorCode::kUnavailable), exitCode(ErrorCode::kDeadline)}) {
    TaskMonitor monitor{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                        clock_,
                        {.restarts = RestartLimits{.max = 0}}};
    for (size_t task = 0; task < 3; ++task) {
      monitor.onSpawned(task);
      monitor.onReady(task);
    }
    monitor.onExit(0, {0, 0});
    monitor.onExit(2, {0, 0});
    monitor.onExit(1, {code, 0});
    clock_.advance(seconds(1));
    monitor.onTime();
    EXPECT_EQ(monitor.jobExitCode(), code);
  }
}

TEST_F(RestartingMonitorTest, AChiefThatIsKilledBehindItsWordOfFailureHasFailed) {
  monitor_.onExit(0, {0, 0});
  monitor_.onExit(2, {0, 0});
  monitor_.onFailedNotice(1, {"cannot_write", "disk full"});
  monitor_.onExit(1, {0, SIGKILL});
  clock_.advance(seconds(1));
  monitor_.onTime();
  EXPECT_NE(monitor_.jobExitCode(), 0);
}

TEST_F(RestartingMonitorTest, AChiefThatIsKilledBesideAPsIsStartedAgain) {
  monitor_.onExit(2, {0, 0});
  monitor_.onExit(1, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(1), TaskState::kWaiting);
  clock_.advance(seconds(31));
  EXPECT_EQ(monitor_.takeStarts(), std::vector<size_t>{1});
}

TEST_F(RestartingMonitorTest, AChiefThatIsKilledBehindItsResultEndsTheJob) {
  monitor_.onExit(2, {0, 0});
  monitor_.onResult(true);
  monitor_.onExit(1, {0, SIGKILL});
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{0, SIGTERM}}))
      << "the ps would wait for its return";
  monitor_.onExit(0, {128 + SIGTERM, 0});
  expectDone();
}

TEST_F(RestartingMonitorTest, APsThatIsKilledBehindTheResultIsNotStartedAgain) {
  monitor_.onExit(2, {0, 0});
  monitor_.onResult(true);
  monitor_.onExit(0, {0, SIGKILL});
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{1, SIGTERM}}))
      << "the chief would wait for its return";
  monitor_.onExit(1, {0, SIGKILL});
  expectDone();
}

TEST_F(RestartingMonitorTest, APsThatWaitsForItsRestartIsNotWaitedForBehindTheResult) {
  monitor_.onExit(2, {0, 0});
  monitor_.onExit(0, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(0), TaskState::kWaiting);
  monitor_.onResult(true);
  EXPECT_EQ(monitor_.takeOrders(), (std::vector<SignalOrder>{{1, SIGTERM}}));
  monitor_.onExit(1, {0, 0});
  expectDone();
}

TEST_F(RestartingMonitorTest, AWorkerThatWaitsForItsRestartIsNotStartedBehindTheResult) {
  monitor_.onExit(2, {0, SIGKILL});
  EXPECT_EQ(monitor_.state(2), TaskState::kWaiting);
  monitor_.onResult(true);
  clock_.advance(seconds(31));
  EXPECT_TRUE(monitor_.takeStarts().empty());
  EXPECT_TRUE(monitor_.takeOrders().empty());
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(0, {0, 0});
  expectDone();
}

// A worker waited in vain, or was killed once too often, while the others made all steps.
TEST_F(RestartingMonitorTest, WhatFailedBeforeTheResultOfAllStepsDoesNotMatter) {
  for (const bool is_done : {true, false}) {
    TaskMonitor monitor{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                        clock_,
                        {.restarts = RestartLimits{.max = 0}}};
    for (size_t task = 0; task < 3; ++task) {
      monitor.onSpawned(task);
      monitor.onReady(task);
    }
    monitor.onExit(2, {0, SIGKILL});
    ASSERT_TRUE(monitor.rootCause().has_value());
    monitor.onResult(is_done);
    monitor.onExit(1, {0, 0});
    monitor.onExit(0, {128 + SIGTERM, 0});
    EXPECT_TRUE(monitor.finished());
    EXPECT_EQ(monitor.outcome(), is_done ? Outcome::kDone : Outcome::kFailed);
  }
}

TEST_F(RestartingMonitorTest, AFailureThatIsNotJudgedYetAtTheResultIsNoFailure) {
  monitor_.onExit(2, {124, 0});
  monitor_.onResult(true);
  clock_.advance(seconds(1));
  monitor_.onTime();
  EXPECT_FALSE(monitor_.stopping());
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(0, {0, 0});
  expectDone();
}

// The chief repeats its result with each notice that follows.
TEST_F(RestartingMonitorTest, AFailureOfItsOwnBehindTheResultIsNoFailureOfTheJob) {
  for (const size_t task : {size_t{0}, size_t{1}, size_t{2}}) {
    TaskMonitor monitor{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                        clock_,
                        {.restarts = RestartLimits{}}};
    for (size_t each = 0; each < 3; ++each) {
      monitor.onSpawned(each);
      monitor.onReady(each);
    }
    monitor.onResult(true);
    monitor.onFailedNotice(task, {"cannot_write", "disk full"});
    monitor.onResult(true);
    monitor.onExit(task, {exitCode(ErrorCode::kCannotWrite), 0});
    monitor.onResult(true);
    clock_.advance(seconds(5));
    monitor.onTime();
    for (size_t each = 0; each < 3; ++each)
      if (monitor.alive(each)) monitor.onExit(each, {0, 0});
    EXPECT_TRUE(monitor.finished());
    EXPECT_EQ(monitor.outcome(), Outcome::kDone) << monitor.id(task).name();
    EXPECT_EQ(monitor.jobExitCode(), 0) << monitor.id(task).name();
  }
}

// A user pauses the job: the chief has saved and reported that.
TEST_F(RestartingMonitorTest, TasksThatLeavePausedBehindTheResultEndNobody) {
  TaskMonitor monitor{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}, {JobKind::kWorker, 1}},
                      clock_,
                      {.save = seconds(30), .restarts = RestartLimits{}}};
  for (size_t task = 0; task < 3; ++task) {
    monitor.onSpawned(task);
    monitor.onReady(task);
  }
  monitor.onStopRequest(SIGTERM);
  monitor.takeOrders();
  monitor.onResult(false);
  for (const size_t task : {size_t{0}, size_t{2}, size_t{1}}) {
    monitor.onExit(task, {kPausedExitCode, 0});
    EXPECT_TRUE(monitor.takeOrders().empty()) << monitor.id(task).name();
  }
  EXPECT_TRUE(monitor.finished());
  EXPECT_EQ(monitor.outcome(), Outcome::kStopped);
  EXPECT_EQ(monitor.jobExitCode(), 0);
}

TEST_F(RestartingMonitorTest, AWorkerThatIsKilledBehindTheResultEndsNobody) {
  monitor_.onResult(true);
  monitor_.onExit(2, {0, SIGKILL});
  EXPECT_TRUE(monitor_.takeOrders().empty());
  monitor_.onExit(1, {0, 0});
  monitor_.onExit(0, {0, 0});
  expectDone();
}

}  // namespace dtf::launcher
