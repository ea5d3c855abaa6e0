#include "common/train/device_check.h"

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::train {
namespace {

// Returns the mistakes of a job with two workers, the second on gpu:1.
std::string mistakes(const Host& host, const std::string& more = "") {
  testing::TemporaryFiles files;
  files.write(
      "c.yaml",
      "cluster:\n  ps: [a:1]\n  worker:\n    - b:1\n"
      "    - {address: c:1, devices: [gpu:1]" +
          more +
          "}\n"
          "train: {model: {input: {shape: [2]}, layers: [dense: {units: 2}], loss: mse}}\n");
  yaml::Report report;
  const cluster::JobSpec job = cluster::loadCluster("c.yaml", {}, report);
  checkDevices(job, host, report);
  try {
    report.throwIfAny();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    return error.message();
  }
  return "";
}

TEST(DeviceCheckTest, NamesTheLineOfTheTaskWhoseHostLacksADevice) {
  Host host;
  std::vector<std::string> asked;
  host.missing = [&asked](const std::string& device) {
    asked.push_back(device);
    return device == "gpu:1" ? "There is no device gpu:1." : "";
  };
  EXPECT_EQ(mistakes(host).find("c.yaml:5:7: error: There is no device gpu:1.\n"), 0u);
  EXPECT_EQ(asked, (std::vector<std::string>{"cpu:0", "gpu:1"}));
}

TEST(DeviceCheckTest, LooksAtTasksOfThisHostAlone) {
  Host host;
  host.missing = [](const std::string&) { return "missing"; };
  host.runs = [](const cluster::Address&) { return false; };
  EXPECT_EQ(mistakes(host), "");
  EXPECT_EQ(mistakes({}), "");
}

TEST(DeviceCheckTest, LeavesATaskAloneWhoseEnvironmentDecides) {
  Host host;
  host.missing = [](const std::string&) { return "missing"; };
  EXPECT_NE(mistakes(host), "");
  EXPECT_EQ(mistakes(host, ", env: {CUDA_VISIBLE_DEVICES: \"1\"}").find("gpu:1"),
            std::string::npos);
}

// Returns the mistakes of a job with variables on ps/0 and ps/1 in a cluster of `ps`, and an op on
// /cpu:0, whose worker has this device.
std::string variableMistakes(size_t ps, const std::string& device = "cpu:0") {
  testing::TemporaryFiles files;
  files.write(
      "c.yaml",
      "cluster: {worker: [b:1]}\n"
      "train:\n"
      "  model:\n"
      "    input: {shape: [2]}\n"
      "    graph:\n"
      "      ops:\n"
      "        - Variable: {name: v, shape: [2, 1], initializer: zeros, device: /job:ps/task:0}\n"
      "        - Variable: {name: w, shape: [2, 1], initializer: zeros, device: /job:ps/task:1}\n"
      "        - Add: {name: u, inputs: [v, w], device: /cpu:0}\n"
      "        - MatMul: {name: y, inputs: [input, u]}\n"
      "      output: y\n"
      "    loss: mse\n");
  yaml::Report report;
  cluster::TrainSpec train = *cluster::loadCluster("c.yaml", {}, report).train;
  train.model.input_dtype = train.model.labels_dtype = DType::kFloat32;
  const model::ModelGraph model = model::buildTrainingGraph(train.model, 1);
  cluster::ClusterSpec cluster;
  cluster.worker.resize(1);
  cluster.worker[0].devices = {device};
  cluster.ps.resize(ps);
  const bool all = checkModelDevices(model, cluster, report);
  EXPECT_EQ(all, report.empty());
  try {
    report.throwIfAny();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(DeviceCheckTest, NamesTheLineOfAVariableWhosePsIsNotThere) {
  EXPECT_EQ(variableMistakes(2), "");
  EXPECT_EQ(variableMistakes(1).find(
                "c.yaml:8:11: error: variable 'graph/w' asks for '/job:ps/task:1', but the cluster "
                "has 1 ps\n"),
            0u);
  EXPECT_EQ(variableMistakes(0), "") << "in one process all ps are it";
}

TEST(DeviceCheckTest, AnOpOnTheCpuNeedsAWorkerThatComputesThere) {
  EXPECT_EQ(variableMistakes(2, "cpu:1"), "");
  EXPECT_EQ(
      variableMistakes(2, "gpu:0")
          .find(
              "c.yaml:9:11: error: an op asks for /cpu:0, but worker/0 computes its whole step on "
              "gpu:0: leave the op's device out, or give the worker 'devices: [cpu:0]'\n"),
      0u);
}

}  // namespace
}  // namespace dtf::train
