// A task that is lost and started again, by whomever: the job goes on, with the same bits in sync
// training. Real processes, real kill -9.

#include <signal.h>

#include <fmt/core.h>
#include <fmt/format.h>

#include <chrono>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

TEST_F(RecoveryTest, SyncTrainingWaitsForALostWorkerAndEndsWithTheSameBits) {
  start(syncJob(), "calm");
  awaitEnd();
  start(syncJob(), "disturbed");
  for (const int step : {1000, 3000, 5000}) killAndStartAgain(1, step);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], kSteps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(RecoveryTest, ALostChiefIsStartedAgainAndNobodyInitialisesTwice) {
  start(syncJob(), "calm");
  awaitEnd();
  start(syncJob(), "disturbed");
  for (const int step : {1000, 3000}) killAndStartAgain(0, step);
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], kSteps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

// Sends that worker of a launch a signal. The process; -1: there is none.
pid_t signalWorker(const std::vector<std::string>& processes, int rank, int signal) {
  const std::string option("--task\0", 7);  // as /proc has it
  for (const std::string& process : processes) {
    const bool is_it = process.find("workerd") != std::string::npos &&
                       process.find(option + std::to_string(rank)) != std::string::npos;
    if (!is_it) continue;
    const pid_t pid = std::stoi(process);
    ::kill(pid, signal);
    return pid;
  }
  return -1;
}

TEST_F(RecoveryTest, DtfLaunchStartsWorkersAgainAndTheBitsStayTheSame) {
  ClusterOptions options = syncJob();
  options.steps = 4 * kSteps;  // some seconds
  ASSERT_EQ(launch(writeCluster(options, "calm")).exit_code, 0);
  Process launcher(launchCommand(writeCluster(options, "disturbed")), {}, folder_.path());
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
  Process launcher(launchCommand(writeCluster(options, "disturbed")), {}, folder_.path());
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
  options.steps = 8 * kSteps;
  Process launcher(launchCommand(writeCluster(options)), {}, folder_.path());
  ASSERT_TRUE(launcher.waitForOutput("tasks are ready", kEnd)) << launcher.err();
  ASSERT_GT(signalWorker(leftovers(), 1, SIGKILL), 0);
  const ProcessResult result = launcher.wait(kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["outcome"], "done");
  EXPECT_EQ(summary()["global_step"], options.steps);
  expectNothingLeft();
}

TEST_F(RecoveryTest, AFrozenPsIsNamedThoughItsWorkersAreToBeStartedAgain) {
  ClusterOptions options = syncJob();
  options.steps = 100'000'000;
  options.top_more =
      "timeouts: {lease_seconds: 2, heartbeat_seconds: 0.5, rejoin_seconds: 3}\n"
      "launch: {restarts: {max: 0}}\n";
  Process launcher(launchCommand(writeCluster(options)), {}, folder_.path());
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
  awaitStep(400);
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
  awaitStep(400);
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
