// Every example counts once an epoch, even in a short last batch. Real processes are stopped,
// resumed and killed around that batch.

#include <signal.h>

#include <chrono>
#include <sstream>

#include "tests/e2e/recovery_fixture.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

class EpochsTest : public RecoveryTest {
 protected:
  // Three workers with batches of 4: an epoch is three steps of 12 examples, and one of 5, of which
  // the workers have 2, 2 and 1.
  static ClusterOptions options(const std::string& mode = "sync") {
    return {.workers = 3,
            .mode = mode,
            .epochs = 6,
            .examples = 41,
            .batch_size = 4,
            .optimizer = "{adam: {learning_rate: 0.001}}",
            .layers =
                "[flatten: , dense: {units: 16, activation: relu}, batch_normalization: ,"
                " dropout: {rate: 0.2}, dense: {units: 10}]"};
  }
  static constexpr int kStepsOfAll = 6 * 4;

  std::string calmDigest(const ClusterOptions& options) {
    const ProcessResult result = launch(writeCluster(options, "calm"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(summary("calm")["global_step"], kStepsOfAll);
    return digestOf("calm");
  }
};

// Five examples in batches of three: one was never used in three epochs, and another three times.
TEST_F(EpochsTest, EachExampleChangesAsMuchThoughOneBatchIsShort) {
  const std::string x = data::npyOf("<f4", "(5, 5)", [] {
    std::vector<float> values(25);
    for (size_t i = 0; i < 5; ++i) values[6 * i] = 1;
    return values;
  }());
  folder_.write("x.npy", x);
  folder_.write("y.npy", data::npyOf("<f4", "(5,)", std::vector<float>(5, 1)));
  const std::string file = folder_.write(
      "job.yaml",
      "job: job\nrun_dir: " + folder_.path() +
          "/runs/job\ncluster: {worker: [local]}\ntrain:\n"
          "  model:\n    input: {shape: [5]}\n    layers: [dense: {units: 1, kernel_initializer: "
          "zeros}]\n    loss: mse\n"
          "  data: {train: {format: npy, features: x.npy, targets: y.npy}, batch_size: 3}\n"
          "  optimizer: {gradient_descent: {learning_rate: 0.0001}}\n"
          "  epochs: 3\n  checkpoint: {every_steps: 100000}\n");
  const ProcessResult result = launch(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 6);
  const ProcessResult predicted = runProcess(
      {binary("dtf-launch"), "predict", file, "--input", folder_.path() + "/x.npy", "--json"},
      seconds(20));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  std::vector<double> outputs;
  std::istringstream lines(predicted.out);
  for (std::string line; std::getline(lines, line);)
    outputs.push_back(Json::parse(line)["outputs"][0].asDouble());
  ASSERT_EQ(outputs.size(), 5u);
  // One use more or less is 6.7e-5.
  for (const double output : outputs) EXPECT_NEAR(output, outputs[0], 1e-6);
}

TEST_F(EpochsTest, AWorkerThatIsKilledInAShortBatchCostsTimeAlone) {
  const std::string calm = calmDigest(options());
  for (const int rank : {0, 2}) {
    const std::string name = "disturbed" + std::to_string(rank);
    failpoints_["worker/" + std::to_string(rank)] = "training.in_short_batch=kill@2";
    start(options(), name);
    EXPECT_EQ(workers_[static_cast<size_t>(rank)]->wait(kEnd).exit_code, 128 + SIGKILL);
    workers_[static_cast<size_t>(rank)] = task("worker", rank);
    awaitEnd();
    EXPECT_EQ(summary(name)["global_step"], kStepsOfAll);
    EXPECT_EQ(digestOf(name), calm) << rank;
  }
}

// Killed in the short batch of the fourth epoch: the last checkpoint is of that step, of the one
// before, or of the middle of the epoch.
TEST_F(EpochsTest, AJobGoesOnInTheMiddleOfAnEpochAndAtItsShortBatch) {
  const std::string calm = calmDigest(options());
  for (const int every : {1, 2, 5}) {
    ClusterOptions saving = options();
    saving.top_more = "launch: {restarts: {max: 0}}\n";
    saving.train_more = "  checkpoint: {every_steps: " + std::to_string(every) + "}\n";
    const std::string name = "every" + std::to_string(every);
    const std::string file = writeCluster(saving, name);
    Process first(launchCommand(file), {{"DTF_FAILPOINTS", "training.in_short_batch=kill@4"}},
                  folder_.path());
    EXPECT_NE(first.wait(kEnd).exit_code, 0);
    ASSERT_TRUE(everybodyGone());
    const ProcessResult second = launch(file);
    ASSERT_EQ(second.exit_code, 0) << second.err;
    EXPECT_NE(second.err.find("going on from the checkpoint of step "), std::string::npos)
        << second.err;
    EXPECT_EQ(digestOf(name), calm) << every;
  }
}

// Each of two workers gets a share of the 11 batches, however fast it is.
TEST_F(EpochsTest, AsyncWorkersDoAllBatchesOfAllEpochs) {
  for (const std::string mode : {"async", "bounded"}) {
    ClusterOptions shared = options(mode);
    shared.workers = 2;
    if (mode == "bounded") shared.replication_more = ", staleness: 1";
    const std::string file = writeCluster(shared, mode);
    const ProcessResult result = launch(file);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(summary(mode)["global_step"], 6 * 11);
    const std::string done = "event=finished global_step=66 batches=33 ";
    const size_t first = result.err.find(done);
    ASSERT_NE(first, std::string::npos) << result.err;
    EXPECT_NE(result.err.find(done, first + 1), std::string::npos) << result.err;
  }
}

// More than there are: one short batch, of which worker/2 has nothing.
TEST_F(EpochsTest, ABatchMayBeLargerThanTheData) {
  ClusterOptions few = options();
  few.examples = 2;
  few.batch_size = 1'000'000;
  const ProcessResult result = launch(writeCluster(few));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(summary()["global_step"], 6);
  expectNothingLeft();
}

}  // namespace
}  // namespace dtf::testing
