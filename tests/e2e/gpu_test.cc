// Workers with devices of a plug-in, as libdtf_gpu.so is. The plug-in of these tests computes on
// the host (tests/gpu), not on a GPU. Real processes.

#include <cstdlib>
#include <regex>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace {

constexpr const char* kOnGpu = ", devices: [gpu:0]";

class GpuTest : public ClusterTest {
 protected:
  GpuTest() {
    const char* const build = std::getenv("DTF_BUILD_ROOT");
    EXPECT_NE(build, nullptr);
    const std::string plugin = std::string(build) + "/tests/gpu/libdtf_host_plugin.so";
    ::setenv("DTF_GPU_PLUGIN", plugin.c_str(), 1);
  }
  ~GpuTest() override {
    ::unsetenv("DTF_GPU_PLUGIN");
    ::unsetenv("DTF_TEST_HOST_DEVICES");
    ::unsetenv("DTF_TEST_HOST_FAILS_AFTER");
  }

  static ClusterOptions onGpu(ClusterOptions options) {
    options.worker_more = kOnGpu;
    return options;
  }

  // Runs a job that loses its device in the 20th step.
  void expectFailureInWords(ClusterOptions options) {
    options.top_more += "launch: {restarts: {max: 0}}\n";
    ::setenv("DTF_TEST_HOST_FAILS_AFTER", "20", 1);
    const ProcessResult failed =
        launch(writeCluster(options, "failed"), {}, std::chrono::seconds(30));
    EXPECT_EQ(failed.exit_code, 69) << failed.err;
    EXPECT_NE(failed.err.find("The device fell off the bus"), std::string::npos) << failed.err;
    expectNothingLeft();
  }

  // The same file without its ps.
  std::string withoutPs(const ClusterOptions& options, const std::string& name) {
    writeCluster(options, name);
    const std::string text = folder_.read(name + ".yaml");
    return folder_.write(name + ".yaml", std::regex_replace(text, std::regex("  ps: .*\n"), ""));
  }
};

TEST_F(GpuTest, AWorkersGpuTrainsWhatItsCpuDoes) {
  const ClusterOptions options{
      .mode = "sync",
      .steps = 40,
      .layers =
          "[conv2d: {filters: 4, kernel_size: 5, strides: 2, activation: relu}, "
          "max_pooling2d: {pool_size: 2}, batch_normalization: , flatten: , dropout: {rate: 0.2}, "
          "dense: {units: 10, name: softmax}]"};
  ASSERT_EQ(launch(writeCluster(options, "cpu")).exit_code, 0);
  const ProcessResult result = launch(writeCluster(onGpu(options), "gpu"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("devices=gpu:0"), std::string::npos) << result.err;
  EXPECT_EQ(summary("gpu")["outcome"], "done");
  EXPECT_NEAR(summary("gpu")["final_loss"].asDouble(), summary("cpu")["final_loss"].asDouble(),
              1e-4);
  EXPECT_NEAR(summary("gpu")["eval"]["loss"].asDouble(), summary("cpu")["eval"]["loss"].asDouble(),
              1e-4);
}

// A loop over the 28 rows of an image, unrolled there.
TEST_F(GpuTest, ARecurrentLayerTrainsThereToo) {
  const ClusterOptions options{.mode = "sync",
                               .steps = 10,
                               .layers =
                                   "[reshape: {target_shape: [28, 28]}, lstm: {units: 8}, dense: "
                                   "{units: 10, name: softmax}]"};
  ASSERT_EQ(launch(writeCluster(options, "cpu")).exit_code, 0);
  const ProcessResult result = launch(writeCluster(onGpu(options), "gpu"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(summary("gpu")["final_loss"].asDouble(), summary("cpu")["final_loss"].asDouble(),
              1e-4);
}

// Several inputs, of which two name rows of tables.
TEST_F(GpuTest, CategoriesAreLookedUpThereToo) {
  const auto write = [this](const std::string& name, const std::string& device) {
    return folder_.write(name + ".yaml",
                         "job: " + name + "\nrun_dir: " + folder_.path() + "/runs/" + name +
                             "\ncluster:\n  ps: [localhost:auto]\n  worker: [{address: "
                             "'localhost:auto', devices: [" +
                             device + "]}]\ntrain: " + std::getenv("DTF_SOURCE_ROOT") +
                             "/configs/jobs/clicks_wide_deep.yaml\n");
  };
  const std::vector<std::string> smaller = {"--set", "train.steps=60", "--set",
                                            "train.data.train.count=10000"};
  ASSERT_EQ(launch(write("cpu", "cpu:0"), smaller).exit_code, 0);
  const ProcessResult result = launch(write("gpu", "gpu:0"), smaller);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(summary("gpu")["eval"]["loss"].asDouble(), summary("cpu")["eval"]["loss"].asDouble(),
              1e-4);
}

TEST_F(GpuTest, BFloat16TrainsWhatFloat32Does) {
  ClusterOptions options{.mode = "sync",
                         .steps = 60,
                         .layers =
                             "[conv2d: {filters: 4, kernel_size: 5, strides: 2, use_bias: false}, "
                             "batch_normalization: , relu: , "
                             "flatten: , dense: {units: 10, name: softmax}]"};
  ASSERT_EQ(launch(writeCluster(onGpu(options), "wide")).exit_code, 0);
  options.train_more = "  precision: bfloat16\n";
  ASSERT_EQ(launch(writeCluster(options, "cpu")).exit_code, 0);
  const ProcessResult result = launch(writeCluster(onGpu(options), "narrow"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const double wide = summary("wide")["final_loss"].asDouble();
  const double narrow = summary("narrow")["final_loss"].asDouble();
  EXPECT_NE(narrow, wide);
  EXPECT_NEAR(narrow, wide, 0.1 * wide);
  EXPECT_NEAR(summary("cpu")["final_loss"].asDouble(), wide, 0.1 * wide);
}

// The GPU updates the variables, with the same bits as a ps; checkpoints, evaluations and the final
// result read them from there.
TEST_F(GpuTest, WithoutAPsItKeepsTheVariables) {
  ClusterOptions options =
      onGpu({.ps = 1,
             .workers = 1,
             .mode = "sync",
             .steps = 60,
             .optimizer = "{adam: {learning_rate: 0.01, moving_average: {decay: 0.9}}}",
             .layers = "[flatten: , dense: {units: 20}, batch_normalization: , dense: {units: 10, "
                       "name: softmax}]",
             .train_more = "  checkpoint: {every_steps: 10}\n  eval: {every_steps: 20}\n"});
  ASSERT_EQ(launch(writeCluster(options, "ps")).exit_code, 0);
  const ProcessResult whole = launch(withoutPs(options, "whole"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(folder_.read("runs/whole/logs/worker-0.1.log").find("event=variables kept_on=gpu:0"),
            std::string::npos);
  const std::string file = withoutPs(options, "parts");
  ASSERT_EQ(launch(file, {"--set", "train.steps=25"}).exit_code, 0);
  const ProcessResult rest = launch(file);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(rest.err.find("going on from the checkpoint of step 25"), std::string::npos)
      << rest.err;
  const Json expected = summary("ps");
  for (const std::string name : {"whole", "parts"}) {
    EXPECT_EQ(summary(name)["parameters_digest"], expected["parameters_digest"]) << name;
    EXPECT_EQ(summary(name)["eval"]["loss"], expected["eval"]["loss"]) << name;
    EXPECT_EQ(summary(name)["checkpoint"]["last_step"], 60) << name;
  }
  expectNothingLeft();
}

// Each GPU updates its share and fetches the others'. In async mode a push waits while a checkpoint
// is taken.
TEST_F(GpuTest, SeveralGpusWithoutAPsKeepTheVariables) {
  ::setenv("DTF_TEST_HOST_DEVICES", "3", 1);
  const ClusterOptions options{.ps = 1,
                               .workers = 1,
                               .mode = "async",
                               .steps = 40,
                               .batch_size = 21,
                               .optimizer = "{momentum: {learning_rate: 0.05, momentum: 0.9}}",
                               .layers =
                                   "[flatten: , dense: {units: 20}, batch_normalization: , dense: "
                                   "{units: 10, name: softmax}]",
                               .worker_more = ", devices: [gpu:0, gpu:1, gpu:2]",
                               .train_more = "  checkpoint: {every_steps: 5}\n"};
  ASSERT_EQ(launch(writeCluster(options, "ps")).exit_code, 0);
  const std::string file = withoutPs(options, "job");
  ASSERT_EQ(launch(file, {"--set", "train.steps=25"}).exit_code, 0);
  const ProcessResult rest = launch(file);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_NE(folder_.read("runs/job/logs/worker-0.2.log")
                .find("event=variables kept_on=gpu:0,gpu:1,gpu:2"),
            std::string::npos);
  EXPECT_EQ(summary("job")["parameters_digest"], summary("ps")["parameters_digest"]);
  EXPECT_EQ(summary("job")["checkpoint"]["last_step"], 40);
  expectNothingLeft();
}

// The 45th to the 47th call of the device fails, in a step or in an update, during a checkpoint or
// just after one.
TEST_F(GpuTest, ADeviceThatFailsEndsTheJobInWordsAndItsCheckpointStays) {
  for (const std::string mode : {"sync", "async"}) {
    for (const std::string after : {"44", "45", "46"}) {
      ::setenv("DTF_TEST_HOST_FAILS_AFTER", after.c_str(), 1);
      const std::string name = mode + after;
      const ClusterOptions options = onGpu({.ps = 1,
                                            .workers = 1,
                                            .mode = mode,
                                            .steps = 60,
                                            .top_more = "launch: {restarts: {max: 0}}\n",
                                            .train_more = "  checkpoint: {every_steps: 1}\n"});
      const ProcessResult failed = launch(withoutPs(options, name), {}, std::chrono::seconds(30));
      EXPECT_EQ(failed.exit_code, 69) << failed.err;
      EXPECT_NE(failed.err.find("The device fell off the bus"), std::string::npos) << failed.err;
      ::unsetenv("DTF_TEST_HOST_FAILS_AFTER");
      const ProcessResult rest = launch(folder_.path() + "/" + name + ".yaml");
      EXPECT_EQ(rest.exit_code, 0) << rest.err;
      EXPECT_NE(rest.err.find("going on from the checkpoint of step"), std::string::npos)
          << rest.err;
    }
  }
  EXPECT_EQ(summary("sync44")["parameters_digest"], summary("sync46")["parameters_digest"]);
}

// Weights of 3.2 and 4.2 MB move while other layers are computed; without a ps nothing moves.
TEST_F(GpuTest, LayersThatMoveBesideTheComputationArriveWhole) {
  const ClusterOptions options =
      onGpu({.ps = 1,
             .workers = 1,
             .mode = "sync",
             .steps = 5,
             .batch_size = 4,
             .layers = "[flatten: , dense: {units: 1024}, relu: , dense: "
                       "{units: 1024}, relu: , dense: {units: 10}]"});
  ASSERT_EQ(launch(writeCluster(options, "ps")).exit_code, 0);
  ASSERT_EQ(launch(withoutPs(options, "kept")).exit_code, 0);
  EXPECT_EQ(summary("ps")["parameters_digest"], summary("kept")["parameters_digest"]);
}

// Each copy to the host is made when it is waited for, and the memory that it goes to has no
// numbers until then.
TEST_F(GpuTest, GradientsThatLeaveAsTheyComeHaveTheSameBits) {
  ClusterOptions options =
      onGpu({.ps = 1,
             .mode = "sync",
             .steps = 6,
             .batch_size = 4,
             .layers = "[flatten: , dense: {units: 1024}, batch_normalization: , relu: , dense: "
                       "{units: 1024}, relu: , dense: {units: 10}]"});
  for (const std::string name : {"true", "false"}) {
    options.top_more = "shared_memory: false\nstream_gradients: " + name + "\n";
    const ProcessResult result = launch(writeCluster(options, name));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(summary("true")["parameters_digest"], summary("false")["parameters_digest"]);
  options.top_more = "shared_memory: false\n";
  expectFailureInWords(options);
}

// The device computes while the gradient of the batch before travels.
TEST_F(GpuTest, ExchangesOverlapThereToo) {
  ClusterOptions options = onGpu({.workers = 1, .replication_more = ", overlap: true"});
  for (const std::string name : {"first", "again"})
    ASSERT_EQ(launch(writeCluster(options, name)).exit_code, 0);
  EXPECT_EQ(summary("again")["parameters_digest"], summary("first")["parameters_digest"]);
  expectFailureInWords(options);
}

TEST_F(GpuTest, CheckSaysWhatAHostLacksBeforeATaskIsStarted) {
  ::setenv("DTF_TEST_HOST_DEVICES", "0", 1);
  const std::string file = writeCluster(onGpu({}));
  const ProcessResult none =
      runProcess({binary("dtf-launch"), "check", file}, std::chrono::seconds(20));
  EXPECT_EQ(none.exit_code, 69) << none.err;
  EXPECT_NE(none.err.find("error: There is no device gpu:0"), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("(the test wants none)"), std::string::npos) << none.err;
  ::setenv("DTF_GPU_PLUGIN", "/nowhere/libdtf_gpu.so", 1);
  const ProcessResult no_plugin = launch(file);
  EXPECT_EQ(no_plugin.exit_code, 69) << no_plugin.err;
  EXPECT_NE(no_plugin.err.find("/nowhere/libdtf_gpu.so"), std::string::npos) << no_plugin.err;
}

}  // namespace

}  // namespace dtf::testing
