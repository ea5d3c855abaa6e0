// A task that is lost and started again, by whomever: the job goes on, with the same bits in sync
// training. Real processes, real kill -9.

#include <signal.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <chrono>
#include <set>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

TEST_F(RecoveryTest, SyncTrainingWaitsForALostWorkerAndEndsWithTheSameBits) {
  start(syncJob(), "calm");
  awaitEnd();
  start(syncJob(), "disturbed");
  for (const int step : {100, 300, 500}) killAndStartAgain(1, step);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], kSteps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(RecoveryTest, ALostChiefIsStartedAgainAndNobodyInitialisesTwice) {
  start(syncJob(), "calm");
  awaitEnd();
  start(syncJob(), "disturbed");
  for (const int step : {100, 300}) {
    killAndStartAgain(0, step);
    ASSERT_TRUE(workers_[0]->waitForOutput(" event=progress step=", kEnd)) << workers_[0]->err();
    EXPECT_GE(lastStep(), step) << "it goes on from there";
  }
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], kSteps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

// Before anybody else knows that there are values.
TEST_F(RecoveryTest, AChiefThatDiesWhenItHasInitialisedIsStartedAgain) {
  start(syncJob(), "calm");
  awaitEnd();
  failpoints_["worker/0"] = "training.after_initialise=kill";
  start(syncJob(), "disturbed");
  EXPECT_EQ(workers_[0]->wait(kEnd).exit_code, 128 + SIGKILL);
  workers_[0] = task("worker", 0);
  awaitEnd();
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(RecoveryTest, DtfLaunchStartsWorkersAgainAndTheBitsStayTheSame) {
  ClusterOptions options = syncJob();
  ASSERT_EQ(launch(writeCluster(options, "calm")).exit_code, 0);
  Process launcher(launchCommand(writeCluster(options, "disturbed")), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  for (const int rank : {1, 0}) {
    ASSERT_GT(signalWorker(leftovers(), rank, SIGKILL), 0);
    const std::string back = fmt::format("worker/{} is back", rank);
    ASSERT_TRUE(launcher.waitForOutput(back, kEnd)) << launcher.err();
  }
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
  for (const int worker : {2, 3}) EXPECT_EQ(summary("disturbed")["tasks"][worker]["restarts"], 1);
  expectNothingLeft();
}

TEST_F(RecoveryTest, AFrozenWorkerIsReplacedWhenItsLeaseHasRunOut) {
  ClusterOptions options = syncJob();
  options.top_more = "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5}\n";
  ASSERT_EQ(launch(writeCluster(options, "calm")).exit_code, 0);
  Process launcher(launchCommand(writeCluster(options, "disturbed")), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  ASSERT_GT(signalWorker(leftovers(), 1, SIGSTOP), 0);
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kEnd)) << launcher.err();
  EXPECT_NE(launcher.err().find("worker/1 was killed"), std::string::npos) << launcher.err();
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
  EXPECT_EQ(summary("disturbed")["tasks"][3]["restarts"], 1);
  expectNothingLeft();
}

TEST_F(RecoveryTest, AsyncTrainingGoesOnWithoutALostWorkerAndWithItAgain) {
  ClusterOptions options = syncJob();
  options.mode = "async";
  options.steps = 100'000'000;
  options.train_more += "  checkpoint: {every_seconds: 600}\n";
  Process launcher(launchCommand(writeCluster(options)), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  ASSERT_GT(signalWorker(leftovers(), 1, SIGKILL), 0);
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kEnd)) << launcher.err();
  // And on: the chief's log tells its progress.
  const auto step = [this] {
    const std::string log = folder_.read("runs/job/logs/worker-0.1.log");
    const size_t at = log.rfind(" event=progress step=");
    return at == log.npos ? -1 : std::atol(log.c_str() + at + 21);
  };
  const long of_return = step();
  const auto end = std::chrono::steady_clock::now() + Process::kSlowest * kEnd;
  while (step() < of_return + 100 && std::chrono::steady_clock::now() < end) ::usleep(5'000);
  EXPECT_GE(step(), of_return + 100) << launcher.err();
  launcher.signal(SIGTERM);
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["outcome"], "stopped");
  EXPECT_EQ(summary()["tasks"][3]["restarts"], 1);
  expectNothingLeft();
}

TEST_F(RecoveryTest, TheDeathOfASpareBackupWorkerIsNoFailure) {
  ClusterOptions options = syncJob();
  options.workers = 3;
  options.replication_more = ", replicas_to_aggregate: 2";
  options.top_more = "launch: {restarts: {max: 0}}\n";
  Process launcher(launchCommand(writeCluster(options)), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  ASSERT_GT(signalWorker(leftovers(), 2, SIGKILL), 0);
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("warning: worker/2 was killed by SIGKILL (signal 9): a backup worker"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], options.steps);
  EXPECT_EQ(summary()["tasks"][4]["exit_code"], 137);
  expectNothingLeft();
}

TEST_F(RecoveryTest, ByHandTheDeathOfASpareBackupWorkerHoldsUpNobody) {
  ClusterOptions options = syncJob();
  options.workers = 3;
  options.replication_more = ", replicas_to_aggregate: 2";
  options.top_more = "timeouts: {rejoin_seconds: 600}\n";
  start(options, "job");
  awaitStep(100);
  kill("worker", 2);
  workers_.pop_back();
  awaitEnd();
  EXPECT_EQ(summary()["global_step"], options.steps);
}

// The job can do without worker 2. The survivors reach a ps that is started again within 4 s.
ClusterOptions endlessJobWithASpare() {
  ClusterOptions options = syncJob();
  options.workers = 3;
  options.steps = 100'000'000;
  options.replication_more = ", replicas_to_aggregate: 2";
  options.train_more += "  checkpoint: {every_steps: 100}\n";
  options.top_more = "timeouts: {start_seconds: 600, lease_seconds: 4, heartbeat_seconds: 0.5}\n";
  return options;
}

// The new process of the ps has never met the worker, and waits for it in vain.
TEST_F(RecoveryTest, APsThatIsStartedAgainDoesNotEndTheJobForASpareThatIsMissed) {
  start(endlessJobWithASpare(), "job");
  awaitStep(100);
  kill("worker", 2);
  workers_.pop_back();
  kill("ps", 0);
  ps_[0] = task("ps", 0);
  ASSERT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd))
      << workers_[0]->err();
  ASSERT_TRUE(ps_[0]->waitForOutput("event=given_up workers=\"worker/2 (awaited", kEnd))
      << ps_[0]->err();
  awaitStep(lastStep() + 100);
  workers_[0]->signal(SIGTERM);
  awaitEnd();
}

// Nor does a worker that starts after it wait for the spare: the chief has passed the start.
TEST_F(RecoveryTest, AWorkerThatStartsAfterAPsDoesNotWaitForASpareThatIsMissed) {
  start(endlessJobWithASpare(), "job");
  awaitStep(100);
  kill("worker", 2);
  kill("worker", 1);
  workers_.pop_back();
  kill("ps", 0);
  ps_[0] = task("ps", 0);
  workers_[1] = task("worker", 1);
  ASSERT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd))
      << workers_[0]->err();
  awaitStep(lastStep() + 100);
  workers_[0]->signal(SIGTERM);
  awaitEnd();
}

// A ps that is started again does not know which workers were lost before: it waits one lease for
// them.
TEST_F(RecoveryTest, APsThatIsStartedAgainEndsWithAJobThatEndsWithoutAWorker) {
  ClusterOptions options{.steps = 100'000'000};
  options.train_more = "  report: {every_steps: 20}\n  checkpoint: {every_steps: 100}\n";
  options.top_more = "timeouts: {lease_seconds: 4, heartbeat_seconds: 0.5}\n";
  start(options, "job");
  awaitStep(100);
  kill("worker", 1);
  workers_.pop_back();
  kill("ps", 1);
  ps_[1] = task("ps", 1);
  ASSERT_TRUE(workers_[0]->waitForOutput("ps/1 lost its values: all go back", kEnd))
      << workers_[0]->err();
  awaitStep(lastStep() + 100);
  workers_[0]->signal(SIGTERM);
  const auto begin = std::chrono::steady_clock::now();
  awaitEnd();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

// Attempts are counted through restarts and resumes, so each process has a log file of its own.
TEST_F(RecoveryTest, NoLogIsWrittenOverByARestartAndAResume) {
  ClusterOptions options = syncJob();
  options.steps = 100'000'000;
  options.train_more += "  checkpoint: {every_steps: 100}\n";
  const std::string file = writeCluster(options);
  for (int launched = 0; launched < 2; ++launched) {
    Process launcher(launchCommand(file), unhurried(), folder_.path());
    ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
    ASSERT_GT(signalWorker(leftovers(), 1, SIGKILL), 0);
    ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kEnd)) << launcher.err();
    launcher.signal(SIGTERM);
    EXPECT_EQ(launcher.wait(kEnd).exit_code, 0) << launcher.err();
  }
  std::set<std::string> first_lines;
  for (const int attempt : {1, 2, 3, 4}) {
    const std::string log = folder_.read(fmt::format("runs/job/logs/worker-1.{}.log", attempt));
    EXPECT_NE(log.find("event=joined"), std::string::npos) << attempt;
    first_lines.insert(log.substr(0, log.find('\n')));
  }
  EXPECT_EQ(first_lines.size(), 4u) << "each begins with the time of its own start";
  expectNothingLeft();
}

TEST_F(RecoveryTest, AFrozenPsIsNamedThoughItsWorkersAreToBeStartedAgain) {
  ClusterOptions options = syncJob();
  options.steps = 100'000'000;
  options.top_more =
      "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5, rejoin_seconds: 3}\n"
      "launch: {restarts: {max: 0}}\n";
  Process launcher(launchCommand(writeCluster(options)), unhurried(), folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  for (const std::string& process : leftovers())
    if (process.find("psd") != std::string::npos) ::kill(std::stoi(process), SIGSTOP);
  const ProcessResult result = launcher.wait(seconds(30));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("job failed: ps/"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("it is suspended"), std::string::npos) << result.err;
  expectNobodyLeft();
}

// ps/1 begun anew beside a ps/0 that has trained is another model than either.
TEST_F(RecoveryTest, APsThatIsStartedAgainWithoutItsValuesTearsNoModel) {
  ClusterOptions options = syncJob();
  options.mode = "async";
  options.steps = 100'000'000;
  start(options, "job");
  awaitStep(40);
  for (auto& worker : workers_) worker->signal(SIGKILL);  // before they can tell ps/0 to go
  ps_[1]->signal(SIGKILL);
  for (auto& worker : workers_) worker->wait(kEnd);
  ps_[1] = task("ps", 1);
  for (int i = 0; i < 2; ++i) workers_[i] = task("worker", i);
  const ProcessResult chief = workers_[0]->wait(kEnd);
  EXPECT_EQ(chief.exit_code, 65) << chief.err;
  EXPECT_NE(chief.err.find("ps/1 lost its values, and nothing holds them"), std::string::npos)
      << chief.err;
  for (auto& ps : ps_) {
    const ProcessResult result = ps->wait(seconds(20));  // rejoin_seconds is 60
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("the job was ended by worker/0: ps/1 lost its values"),
              std::string::npos)
        << result.err;
  }
}

TEST_F(RecoveryTest, ALostWorkerThatNobodyStartsAgainIsGivenUpInTime) {
  ClusterOptions options = syncJob();
  options.steps = 100'000'000;
  options.top_more = "timeouts: {rejoin_seconds: 5}\n";
  start(options, "job");
  awaitStep(40);
  workers_[1]->signal(SIGKILL);
  ASSERT_TRUE(workers_[0]->waitForOutput("the return of worker/1", seconds(10)))
      << workers_[0]->err();
  const ProcessResult chief = workers_[0]->wait(seconds(15));
  EXPECT_EQ(chief.exit_code, 69) << chief.err;
  EXPECT_NE(chief.err.find("worker/1 was lost (its process ended), and did not return within 5 s"),
            std::string::npos)
      << chief.err;
}

}  // namespace

}  // namespace dtf::testing
