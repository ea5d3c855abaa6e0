// `durability: replica`: a ps that is lost and started again takes its values from another ps, and
// nothing is lost. Real processes, real kill -9.

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

class PsReplicaTest : public RecoveryTest {
 protected:
  // One after the other, when the first one's replica is whole again.
  void loseOneAfterTheOther() {
    loseAndStartAgain({1}, 170);
    EXPECT_TRUE(workers_[0]->waitForOutput("ps/1 takes its values from replicas", kEnd));
    EXPECT_TRUE(ps_[1]->waitForOutput("event=replica_seeded ps=ps/0", kEnd));
    loseAndStartAgain({0}, 430);
    EXPECT_TRUE(workers_[0]->waitForOutput("ps/0 takes its values from replicas", kEnd));
  }

  // Awaits the end.
  void expectNothingLost(const std::string& run) {
    EXPECT_TRUE(workers_[0]->waitForOutput("event=finished", kEnd));
    const std::string log = workers_[0]->err();
    EXPECT_EQ(log.find("all go back"), std::string::npos) << log;
    awaitEnd();
    EXPECT_EQ(summary(run)["global_step"], kSteps);
    EXPECT_EQ(summary(run)["outcome"], "done");
  }
};

ClusterOptions replicatedJob(const std::string& mode = "sync") {
  ClusterOptions options = syncJob();
  options.mode = mode;
  options.train_more += "  checkpoint: {every_steps: 50}\n";
  options.top_more += "durability: replica\n";
  return options;
}

TEST_F(PsReplicaTest, ALostPsCostsNoStepAndNoBit) {
  start(syncJob(), "calm");
  awaitEnd();
  start(replicatedJob(), "disturbed");
  loseOneAfterTheOther();
  expectNothingLost("disturbed");
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(PsReplicaTest, AsyncTrainingLosesNoUpdate) {
  start(replicatedJob("async"), "job");
  loseOneAfterTheOther();
  for (auto& ps : ps_)
    EXPECT_TRUE(ps->waitForOutput("event=job_finished global_step=" + std::to_string(kSteps), kEnd))
        << ps->err();
  expectNothingLost("job");
}

TEST_F(PsReplicaTest, WithBackupWorkersToo) {
  ClusterOptions options = replicatedJob();
  options.workers = 3;
  options.replication_more = ", replicas_to_aggregate: 2";
  start(options, "job");
  loseOneAfterTheOther();
  expectNothingLost("job");
}

TEST_F(PsReplicaTest, WithSeveralBatchesAStepToo) {
  ClusterOptions calm = syncJob();
  calm.replication_more = ", replicas_to_aggregate: 5";
  start(calm, "calm");
  awaitEnd();
  ClusterOptions options = replicatedJob();
  options.replication_more = calm.replication_more;
  start(options, "disturbed");
  loseOneAfterTheOther();
  expectNothingLost("disturbed");
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(PsReplicaTest, AShardAndItsReplicaLostAtOnceAreTakenBackToTheCheckpoint) {
  start(syncJob(), "calm");
  awaitEnd();
  start(replicatedJob(), "disturbed");
  loseAndStartAgain({0, 1}, 170);
  EXPECT_TRUE(workers_[0]->waitForOutput("lost their values: all go back", kEnd));
  awaitEnd();
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

TEST_F(PsReplicaTest, NoCheckpointIsNeededUnlessBothAreLost) {
  ClusterOptions options = syncJob();
  options.top_more += "durability: replica\n";
  start(options, "job");
  loseAndStartAgain({1}, 170);
  expectNothingLost("job");
  options.steps = 100'000'000;
  start(options, "lost");
  loseAndStartAgain({0, 1}, 40);
  const ProcessResult chief = workers_[0]->wait(seconds(30));
  EXPECT_EQ(chief.exit_code, 65) << chief.err;
  EXPECT_NE(chief.err.find("lost their values, and nothing holds them"), std::string::npos)
      << chief.err;
}

TEST_F(PsReplicaTest, TheChiefMayBeLostWithThePs) {
  start(syncJob(), "calm");
  awaitEnd();
  start(replicatedJob(), "disturbed");
  awaitStep(170);
  kill("ps", 1);
  kill("worker", 0);
  ps_[1] = task("ps", 1);
  workers_[0] = task("worker", 0);
  expectNothingLost("disturbed");
  EXPECT_EQ(digestOf("disturbed"), digestOf("calm"));
}

}  // namespace

}  // namespace dtf::testing
