// `placement: {strategy: hybrid}`: tables on the ps, the other variables on the workers. The values
// are those of the same job with all variables on the ps, to the bit, whichever task is lost. Real
// processes.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/recovery_fixture.h"

namespace dtf::testing {

namespace {

const std::string kHybrid = "  placement: {strategy: hybrid}\n";

// The pixels of the digits are looked up. The table and the dense layer are cut over several tasks.
ClusterOptions tableJob(int ps, int workers) {
  return {.ps = ps,
          .workers = workers,
          .mode = "sync",
          .steps = 60,
          .batch_size = 4,
          .optimizer = "{adam: {learning_rate: 0.01}}",
          .layers =
              "[embedding: {input_dim: 3000, output_dim: 4}, flatten: , dense: {units: 10, "
              "name: softmax}]"};
}

class HybridTest : public RecoveryTest {
 protected:
  ProcessResult launchAs(ClusterOptions options, const std::string& name,
                         const std::string& placement) {
    options.train_more += placement;
    return launch(writeCluster(options, name));
  }

  // Expects the values of the same job with all variables on the ps.
  void expectValuesOfJobOnPs(const ClusterOptions& options, const std::string& name) {
    const ProcessResult on_ps = launchAs(options, name + "-on-ps", "");
    ASSERT_EQ(on_ps.exit_code, 0) << on_ps.err;
    const ProcessResult hybrid = launchAs(options, name, kHybrid);
    ASSERT_EQ(hybrid.exit_code, 0) << hybrid.err;
    EXPECT_NE(digestOf(name), "");
    EXPECT_EQ(digestOf(name), digestOf(name + "-on-ps")) << name;
    EXPECT_EQ(summary(name)["final_loss"], summary(name + "-on-ps")["final_loss"]);
  }

  // Kills these tasks once the chief has come to `step`, then starts them again.
  void loseAll(const std::vector<std::pair<std::string, int>>& tasks, int step) {
    awaitStep(step);
    for (const auto& [job, index] : tasks) kill(job, index);
    for (const auto& [job, index] : tasks) (job == "ps" ? ps_ : workers_)[index] = task(job, index);
  }
};

// Two ps and three workers, long enough to lose some of them.
ClusterOptions lossyJob() {
  ClusterOptions options = tableJob(2, 3);
  options.steps = 300;
  options.train_more = "  report: {every_steps: 10}\n  checkpoint: {every_steps: 1000}\n" + kHybrid;
  return options;
}

TEST_F(HybridTest, TheValuesAreThoseOfTheSameJobOnPs) {
  expectValuesOfJobOnPs(tableJob(1, 2), "small");
  ClusterOptions options = tableJob(2, 3);
  options.optimizer =
      "{adagrad: {learning_rate: 0.05, moving_average: {decay: 0.9}, clip_by_global_norm: 1}}";
  options.worker_more = ", devices: [cpu:0, cpu:1]";
  options.train_more = "  eval: {every_steps: 20}\n";
  expectValuesOfJobOnPs(options, "towers");
}

TEST_F(HybridTest, TheMessagesCarryTheSameValuesAsSharedMemory) {
  ClusterOptions options = tableJob(2, 2);
  options.top_more = "shared_memory: false\n";
  expectValuesOfJobOnPs(options, "messages");
}

TEST_F(HybridTest, ExplainNamesTheTaskOfEachVariable) {
  ClusterOptions options = tableJob(1, 2);
  options.train_more = kHybrid;
  const std::string file = writeCluster(options);
  const ProcessResult result = runProcess({binary("dtf-launch"), "explain", file}, kEnd);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("/job:ps/task:0\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("/job:worker/task:0..1 (split in 2)\n"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("worker/1 "), std::string::npos) << result.out;
}

TEST_F(HybridTest, APinnedVariableLiesOnTheTaskThatItNames) {
  ClusterOptions options = tableJob(2, 2);
  ASSERT_EQ(launchAs(options, "dealt", kHybrid).exit_code, 0);
  const ProcessResult pinned =
      launchAs(options, "pinned",
               "  placement: {strategy: hybrid, pins: {softmax/weights: \"/job:worker/task:1\", "
               "softmax/biases: \"/job:ps/task:1\"}}\n");
  ASSERT_EQ(pinned.exit_code, 0) << pinned.err;
  EXPECT_EQ(digestOf("pinned"), digestOf("dealt"));
}

TEST_F(HybridTest, AsyncAndBoundedTrainingEnd) {
  for (const char* mode : {"async", "bounded, staleness: 2"}) {
    ClusterOptions options = tableJob(1, 2);
    options.mode = mode;
    const ProcessResult result = launchAs(options, "job", kHybrid);
    EXPECT_EQ(result.exit_code, 0) << mode << result.err;
    EXPECT_GE(summary()["global_step"].asUint64(), 60u);
  }
}

TEST_F(HybridTest, WhicheverTaskIsLostComesBackToTheSameValues) {
  start(lossyJob(), "calm");
  awaitEnd();
  using Lost = std::vector<std::pair<std::string, int>>;
  for (const Lost& lost :
       {Lost{{"ps", 0}}, Lost{{"ps", 1}}, Lost{{"worker", 0}}, Lost{{"worker", 2}},
        Lost{{"ps", 0}, {"worker", 0}}, Lost{{"ps", 1}, {"worker", 0}}}) {
    SCOPED_TRACE(::testing::PrintToString(lost));
    start(lossyJob(), "lost");
    loseAll(lost, 50);
    awaitEnd();
    EXPECT_EQ(digestOf("lost"), digestOf("calm"));
    std::filesystem::remove_all(folder_.path() + "/runs/lost");
  }
}

// The second task that is lost holds the replica of the first one's shard, which has been filled
// from it.
TEST_F(HybridTest, OneAfterTheOtherLosesNoStep) {
  start(lossyJob(), "calm");
  awaitEnd();
  start(lossyJob(), "lost");
  loseAll({{"ps", 1}}, 50);
  ASSERT_TRUE(workers_[0]->waitForOutput("ps/1 takes its values from replicas", kEnd));
  ASSERT_TRUE(ps_[1]->waitForOutput("event=replica_seeded", kEnd));
  loseAll({{"worker", 0}}, 100);
  awaitEnd();
  EXPECT_EQ(digestOf("lost"), digestOf("calm"));
}

TEST_F(HybridTest, AJobGoesOnFromAndToOtherPlacements) {
  ClusterOptions options = tableJob(2, 2);
  options.steps = 100;
  options.train_more = "  checkpoint: {every_steps: 1000}\n";
  ASSERT_EQ(launchAs(options, "straight", "").exit_code, 0);
  struct Turn {
    int ps;
    std::string placement;
    std::string checkpoint;
  };
  const std::string plain = "  checkpoint: {every_steps: 1000}\n";
  int steps = 0;
  for (const Turn& turn :
       {Turn{1, kHybrid, plain}, Turn{2, "", plain}, Turn{2, kHybrid, plain}, Turn{0, "", plain},
        Turn{3, kHybrid, "  checkpoint: {every_steps: 1000, gather: true}\n"}}) {
    options.ps = turn.ps;
    options.steps = steps += 20;
    options.train_more = turn.checkpoint;
    const ProcessResult result = launchAs(options, "job", turn.placement);
    ASSERT_EQ(result.exit_code, 0) << turn.ps << turn.placement << result.err;
    EXPECT_EQ(summary()["global_step"], steps);
  }
  EXPECT_EQ(digestOf("job"), digestOf("straight"));
}

TEST_F(HybridTest, ShardsThatStayWithTheirTasksAreFoundAgain) {
  ClusterOptions options = tableJob(1, 2);
  options.train_more = "  checkpoint: {every_steps: 20, stay: true}\n";
  const ProcessResult first = launchAs(options, "job", kHybrid);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  options.steps = 80;
  const ProcessResult second = launchAs(options, "job", kHybrid);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(summary()["global_step"], 80);
  const ProcessResult evaluated =
      runProcess({binary("dtf-launch"), "eval", folder_.path() + "/job.yaml"}, kEnd);
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
}

TEST_F(HybridTest, AJobWithoutTablesOrWithoutPsIsRefusedInWords) {
  ClusterOptions options = tableJob(1, 2);
  options.layers = "[flatten: , dense: {units: 10}]";
  const ProcessResult no_tables = launchAs(options, "dense", kHybrid);
  EXPECT_EQ(no_tables.exit_code, 78) << no_tables.err;
  EXPECT_NE(no_tables.err.find("this job has none"), std::string::npos) << no_tables.err;
  EXPECT_NE(no_tables.err.find("dense.yaml:"), std::string::npos) << no_tables.err;
  const ProcessResult no_ps = launchAs(tableJob(0, 2), "no-ps", kHybrid);
  EXPECT_EQ(no_ps.exit_code, 78) << no_ps.err;
  EXPECT_NE(no_ps.err.find("'strategy: hybrid' needs 'ps'"), std::string::npos) << no_ps.err;
}

// In one process all is in one place, so that a file may be tried there.
TEST_F(HybridTest, OneProcessTrainsAHybridFile) {
  const ProcessResult result = launchAs(tableJob(0, 1), "job", kHybrid);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace

}  // namespace dtf::testing
