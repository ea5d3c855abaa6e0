#include "common/cluster/override.h"

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "common/model/model_text.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

namespace {

class OverrideTest : public ::testing::Test {
 protected:
  OverrideTest() {
    files_.write("sub/c.yaml", "cluster:\n  ps: [a:1]\n  worker: [a:2, a:3]\ntrain: t.yaml\n");
    files_.write("sub/t.yaml",
                 "model:\n"
                 "  input: {shape: [4]}\n"
                 "  layers: [dense: {units: 2}, relu]\n"
                 "  loss: mse\n"
                 "optimizer: adagrad\n");
    files_.write("other.yaml", "model: {input: {shape: [9]}, layers: [relu], loss: mse}\n");
  }
  static JobSpec load(std::vector<std::string> overrides) {
    return loadCluster("sub/c.yaml", overrides);
  }
  static std::string mistakes(std::vector<std::string> overrides) {
    return badConfigOf([&] { load(overrides); });
  }

  TemporaryFiles files_;
};

}  // namespace

TEST_F(OverrideTest, ChangesValuesAtAnyDepth) {
  const JobSpec job =
      load({"cluster.ps.0=127.0.0.1:4567", "train.steps=50", "train.model.layers.0.dense.units=9",
            "job=x", "train.data.batch_size=3", "train.steps=51"});
  EXPECT_EQ(job.cluster.ps[0].address.str(), "127.0.0.1:4567");
  EXPECT_EQ(job.train->steps, 51u);  // the last one counts
  EXPECT_NE(model::layerText(job.train->model.layers[0]).find("units=9 "), std::string::npos);
  EXPECT_EQ(job.run_dir, "runs/x");
  EXPECT_EQ(job.train->data.batch_size, 3);
}

TEST_F(OverrideTest, AppendsAndReplacesWholeListsAndMaps) {
  EXPECT_EQ(load({"cluster.ps.1=b:1"}).cluster.ps.size(), 2u);
  EXPECT_EQ(load({"cluster.worker=[c:1, c:2, {address: c:3}]"}).cluster.worker.size(), 3u);
  EXPECT_EQ(load({"cluster.worker.2.address=c:3"}).cluster.worker.at(2).address.str(), "c:3");
  EXPECT_EQ(
      load({"train.placement.pins.dense/weights=/job:ps/task:0"}).train->placement.pins.size(), 1u);
}

TEST_F(OverrideTest, ExtendsAnOptimizerGivenByNameAlone) {
  const OptimizerSpec optimizer =
      load({"train.optimizer.adagrad.learning_rate=0.5"}).train->optimizer;
  EXPECT_EQ(optimizer.kind, OptimizerSpec::Kind::kAdagrad);
  EXPECT_EQ(optimizer.learning_rate, 0.5);
  EXPECT_EQ(load({"train.optimizer=adam"}).train->optimizer.kind, OptimizerSpec::Kind::kAdam);
}

TEST_F(OverrideTest, PathsOfTheCommandLineStartAtTheWorkingDirectory) {
  EXPECT_EQ(load({"train=other.yaml"}).train->model.input_shape.at(0), 9);
  const JobSpec job = load({"train.data.train={format: idx, images: i, labels: l}"});
  EXPECT_EQ(job.train->data.train.images, "i");
  EXPECT_EQ(job.train->data.train.mark.str(),
            "--set train.data.train={format: idx, images: i, labels: l}");
}

TEST_F(OverrideTest, BadOnesAreReportedUnderTheirOwnName) {
  const std::pair<const char*, const char*> cases[] = {
      {"train.stpes=5", "unknown key 'stpes' in 'train' - did you mean 'steps'?"},
      {"trian.steps=5", "unknown key 'trian' - did you mean 'train'?"},
      {"train.steps=0", "'steps' must be from 1 to 1000000000000, got '0'"},
      {"train.steps=", "'steps' needs a value: global steps to train; default 1000"},
      {"train.steps", "expected key.path=value"},
      {"=5", "expected from 1 to 16 keys with dots between them before the '='"},
      {"train..steps=5", "expected from 1 to 16 keys with dots between them before the '='"},
      {"cluster.ps.2=a:7", "'cluster.ps' is a list of 1: expected an index from 0 to 1, got '2'"},
      {"cluster.ps.x=a:7", "'cluster.ps' is a list of 1: expected an index from 0 to 1, got 'x'"},
      {"cluster.ps.0.address=a:7", "'cluster.ps.0' is 'a:1', not a map"},
      {"job=[a", "this '[' is never closed"},
      {"train.optimizer.adam.beta1=0.5",
       "the file chooses the optimizer 'adagrad': to use 'adam', choose it first, --set "
       "train.optimizer=adam"},
      {"train.optimizer.adagrad.momentum=0.5",
       "unknown key 'momentum' in 'adagrad' - it is a key of train.optimizer.momentum"},
      {"foo=5",
       "unknown key 'foo' (one of job, run_dir, cluster, keys, insecure, sessions_max, "
       "shared_memory, stream_gradients, transport, launch, "
       "timeouts, "
       "durability, "
       "metrics, traces, train); a key "
       "below them has dots, as in train.steps=50"},
      {"steps=5", "unknown key 'steps' - write --set train.steps=VALUE"},
      {"train.metrics=[auc]",
       "unknown key 'metrics' in 'train' - write --set train.model.metrics=VALUE"},
      {"train.lr=5",
       "unknown key 'lr' in 'train' - write --set train.optimizer.adagrad.learning_rate=VALUE"},
      {"train.learning_rate=1",
       "unknown key 'learning_rate' in 'train' - write --set "
       "train.optimizer.adagrad.learning_rate=VALUE"},
      {"learning_rate=1",
       "unknown key 'learning_rate' - write --set train.optimizer.adagrad.learning_rate=VALUE"},
      {"train.beta1=0.5",
       "unknown key 'beta1' in 'train' - write --set train.optimizer.adam.beta1=VALUE"},
      {"train.optimizer.learning_rate=1",
       "'learning_rate' is no optimizer: settings of 'adagrad' are below its name, --set "
       "train.optimizer.adagrad.learning_rate=VALUE"},
      {"run_dir=~nobody/x", "'~nobody' is not expanded: write the whole path"},
      {"cluster.worker.0=a:1", "ps/0 and worker/0 are both at a:1"},
      {"train=none.yaml", "cannot read none.yaml: No such file or directory (2)"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_EQ(mistakes({text}), "--set " + std::string(text) + ": error: " + message);
}

TEST_F(OverrideTest, AnotherOptimizersKeyIsTheMistakeOfTheOverride) {
  files_.write("map.yaml",
               "model: {input: {shape: [4]}, layers: [relu], loss: mse}\n"
               "optimizer: {gradient_descent: {learning_rate: 0.1}}\n");
  EXPECT_EQ(mistakes({"train=map.yaml", "train.optimizer.adam.beta1=0.5"}),
            "--set train.optimizer.adam.beta1=0.5: error: the file chooses the optimizer "
            "'gradient_descent': to use 'adam', choose it first, --set train.optimizer=adam");
  EXPECT_EQ(mistakes({"train=map.yaml", "train.optimizer.learning_rate=0.5"}),
            "--set train.optimizer.learning_rate=0.5: error: 'learning_rate' is no optimizer: "
            "settings of 'gradient_descent' are below its name, --set "
            "train.optimizer.gradient_descent.learning_rate=VALUE");
  EXPECT_EQ(load({"train=map.yaml", "train.optimizer=adam", "train.optimizer.adam.beta1=0.5"})
                .train->optimizer.beta1,
            0.5);
}

TEST_F(OverrideTest, ALongOneIsCutInMessages) {
  const std::string report = mistakes({"nothing." + std::string(100'000, 'k') + "=1"});
  EXPECT_LT(report.size(), 1000u);
}

TEST(LoadCluster, OfOneProcessHasOneWorkerAndNoPs) {
  const testing::TemporaryFiles files;
  for (const char* text : {"job: x\n", "cluster: {worker: [local]}\n"}) {
    files.write("c.yaml", text);
    const JobSpec job = loadCluster("c.yaml", {});
    EXPECT_TRUE(job.cluster.ps.empty());
    ASSERT_EQ(job.cluster.worker.size(), 1u);
    EXPECT_EQ(job.cluster.worker[0].address.str(), "localhost:auto");
    // dtf-launch passes the chosen port to the task in this way.
    const std::string overrides[] = {"cluster.worker.0=localhost:4567"};
    const JobSpec told = loadCluster("c.yaml", overrides);
    ASSERT_EQ(told.cluster.worker.size(), 1u);
    EXPECT_EQ(told.cluster.worker[0].address.str(), "localhost:4567");
  }
}

}  // namespace dtf::cluster
