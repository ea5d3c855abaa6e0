// A ps that is lost and started again: all go back to the newest checkpoint, and in sync training
// the job ends with the same bits. Real processes, real kill -9.

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

class PsRecoveryTest : public RecoveryTest {};

ClusterOptions savedJob(const std::string& mode = "sync") {
  ClusterOptions options = syncJob();
  options.mode = mode;
  options.train_more += "  checkpoint: {every_steps: 50}\n";
  return options;
}

TEST_F(PsRecoveryTest, ALostPsCostsSomeStepsAndNoBit) {
  start(savedJob(), "calm");
  awaitEnd();
  start(savedJob(), "disturbed");
  loseAndStartAgain({1}, 170);
  loseAndStartAgain({0}, 430);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd));
  EXPECT_NE(workers_[0]->err().find("ps/1 lost its values: all go back"), std::string::npos)
      << workers_[0]->err();
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], kSteps);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

// Where an interval takes longer than a checkpoint, it is the bound.
TEST_F(PsRecoveryTest, OfSlowStepsNoMoreThanTheLastIntervalIsLost) {
  start(slowJob("", "  checkpoint: {every_steps: 40}\n"), "job");
  loseAndStartAgain({1}, 130);
  loseAndStartAgain({0}, 290);
  EXPECT_TRUE(workers_[0]->waitForOutput("ps/0 lost its values: all go back", kEnd));
  const std::vector<int> lost = stepsLost("checkpoint");
  EXPECT_EQ(lost.size(), 2u) << workers_[0]->err();
  for (const int steps : lost) EXPECT_LE(steps, 40 + kSlowStepsOfACut);
  awaitEnd();
}

TEST_F(PsRecoveryTest, AllPsMayBeLostAtOnce) {
  start(savedJob(), "calm");
  awaitEnd();
  start(savedJob(), "disturbed");
  loseAndStartAgain({0, 1}, 170);
  awaitEnd();
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(PsRecoveryTest, AsyncTrainingGoesBackAndComesToItsEnd) {
  start(savedJob("async"), "job");
  loseAndStartAgain({1}, 170);
  loseAndStartAgain({0}, 430);
  awaitEnd();
  EXPECT_EQ(summary("job")["global_step"], kSteps);
  EXPECT_EQ(summary("job")["outcome"], "done");
}

TEST_F(PsRecoveryTest, WithBackupWorkersToo) {
  ClusterOptions options = savedJob();
  options.workers = 3;
  options.replication_more = ", replicas_to_aggregate: 2";
  start(options, "job");
  loseAndStartAgain({1}, 170);
  loseAndStartAgain({0}, 430);
  awaitEnd();
  EXPECT_EQ(summary("job")["global_step"], kSteps);
}

// Workers that wait for the end of the save train on.
TEST_F(PsRecoveryTest, APsLostInTheLastSaveTakesAllBackAndTheyTrainToTheEndAgain) {
  ClusterOptions options = savedJob();
  options.train_more = "  report: {every_steps: 20}\n  checkpoint: {every_steps: 100000}\n";
  options.steps = 200;
  start(options, "calm");
  awaitEnd();
  failpoints_["ps/1"] = "checkpoint.after_shard_create=kill@2";  // the first one is of step 0
  start(options, "disturbed");
  EXPECT_EQ(ps_[1]->wait(kEnd).exit_code, 128 + SIGKILL);
  ps_[1] = task("ps", 1);
  for (auto& worker : workers_)
    EXPECT_TRUE(worker->waitForOutput("event=trains_on", kEnd)) << worker->err();
  awaitEnd();
  EXPECT_EQ(summary("disturbed")["global_step"], 200);
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(PsRecoveryTest, TheChiefMayBeLostWithThePs) {
  start(savedJob(), "calm");
  awaitEnd();
  start(savedJob(), "disturbed");
  awaitStep(170);
  kill("ps", 1);
  kill("worker", 0);
  ps_[1] = task("ps", 1);
  workers_[0] = task("worker", 0);
  awaitEnd();
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(PsRecoveryTest, WithoutCheckpointsTheJobEndsWithTheReason) {
  ClusterOptions options = syncJob();
  options.steps = 100'000'000;
  start(options, "job");
  loseAndStartAgain({1}, 40);
  const ProcessResult chief = workers_[0]->wait(seconds(30));
  EXPECT_EQ(chief.exit_code, 65) << chief.err;
  EXPECT_NE(chief.err.find("ps/1 lost its values, and nothing holds them; add `checkpoint:`"),
            std::string::npos)
      << chief.err;
  const ProcessResult other = workers_[1]->wait(seconds(30));
  EXPECT_NE(other.exit_code, 0);
  EXPECT_NE(other.err.find("ps/1 lost its values"), std::string::npos) << other.err;
}

TEST_F(PsRecoveryTest, APsThatNobodyStartsAgainIsGivenUpInTimeByName) {
  ClusterOptions options = savedJob();
  options.steps = 100'000'000;
  options.top_more = "timeouts: {rejoin_seconds: 3}\n";
  start(options, "job");
  awaitStep(40);
  kill("ps", 1);
  for (auto& worker : workers_) {
    const ProcessResult result = worker->wait(seconds(20));
    EXPECT_EQ(result.exit_code, 69) << result.err;
    EXPECT_NE(result.err.find("ps/1"), std::string::npos) << result.err;
  }
}

}  // namespace

}  // namespace dtf::testing
