#include "common/cluster/cluster_yaml.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/model/model_text.h"
#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;
using yaml::Report;

namespace {

constexpr const char* kModel =
    "model:\n"
    "  input: {shape: [28, 28, 1]}\n"
    "  layers:\n"
    "    - flatten:\n"
    "    - dense: {units: 10, name: softmax}\n"
    "  loss: sparse_categorical_crossentropy\n";

constexpr const char* kCluster =
    "cluster:\n"
    "  ps: [localhost:2221]\n"
    "  worker: [localhost:2223, localhost:2224]\n";

}  // namespace

TEST(LoadCluster, IncludesTheTrainFileRelativeToItself) {
  const TemporaryFiles files;
  files.write("clusters/c.yaml", std::string(kCluster) + "train: ../jobs/t.yaml\n");
  files.write(
      "jobs/t.yaml",
      std::string(kModel) + "data:\n  train: {format: idx, images: ../d/i.gz, labels: /abs/l}\n");
  const JobSpec job = loadCluster("clusters/c.yaml", {});
  ASSERT_TRUE(job.train);
  EXPECT_EQ(job.train->data.train.images, "d/i.gz");
  EXPECT_EQ(job.train->data.train.labels, "/abs/l");
  EXPECT_EQ(job.train->model.mark.file, "jobs/t.yaml");
  EXPECT_FALSE(job.train->data.eval);
}

TEST(LoadCluster, ATrainFileByItselfIsAJobInOneProcess) {
  const TemporaryFiles files;
  files.write("jobs/t.yaml",
              std::string(kModel) + "data:\n  train: {format: idx, images: i.gz, labels: l.gz}\n");
  const std::string overrides[] = {"train.steps=7", "job=alone"};
  const JobSpec job = loadCluster("jobs/t.yaml", overrides);
  EXPECT_TRUE(job.cluster.isOneProcess());
  EXPECT_EQ(job.run_dir, "runs/alone");
  EXPECT_EQ(job.train.value().steps, 7u);
  EXPECT_EQ(job.train->data.train.images, "jobs/i.gz");
  EXPECT_EQ(job.train->model.mark.str(), "jobs/t.yaml:1:1");
  EXPECT_FALSE(namesCluster("jobs/t.yaml"));
  const std::string clustered[] = {"cluster={ps: [a:1], worker: [b:1]}"};
  EXPECT_EQ(loadCluster("jobs/t.yaml", clustered).cluster.ps.size(), 1u);
}

TEST(LoadCluster, TakesTheTrainPartInPlaceAndChecksItAgainstTheCluster) {
  const TemporaryFiles files;
  files.write("c.yaml", std::string(kCluster) +
                            "train:\n"
                            "  model: {input: {shape: [2]}, layers: [relu], loss: mse}\n"
                            "  placement: {pins: {w: /job:PS/task:1/cpu:0}}\n"
                            "  replication: {mode: sync, total_num_replicas: 3}\n");
  const std::string report = badConfigOf([] { loadCluster("c.yaml", {}); });
  EXPECT_NE(
      report.find("c.yaml:6:25: error: there is no '/job:PS/task:1/cpu:0': the cluster has 1 ps"),
      std::string::npos)
      << report;
  EXPECT_NE(report.find(
                "c.yaml:7:49: error: 'total_num_replicas' must be the number of workers, 2, got 3"),
            std::string::npos)
      << report;
}

// A pin and a share are those of the task, wherever the leader puts its shard.
TEST(LoadCluster, TheLeaderOfAJobWithoutPsHostsShardZero) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "cluster: {worker: [a:1, b:1, c:1]}\n"
              "train:\n"
              "  model: {input: {shape: [2]}, layers: [relu], loss: mse}\n"
              "  placement: {pins: {v: /job:worker/task:0, w: /job:worker/task:1, x: "
              "/job:worker/task:2}, shares: [3, 1, 2]}\n"
              "  replication: {leader: worker/1}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.cluster.shardHosts().of(0).name(), "worker/1");
  EXPECT_EQ(job.cluster.shardHosts().of(1).name(), "worker/0");
  EXPECT_EQ(job.cluster.hosts()[0].address.str(), "b:1");
  const std::map<std::string, std::string>& pins = job.train->placement.pins;
  EXPECT_EQ(pins.at("v"), "/job:ps/task:1") << "its shard";
  EXPECT_EQ(pins.at("w"), "/job:ps/task:0");
  EXPECT_EQ(pins.at("x"), "/job:ps/task:2");
  EXPECT_EQ(job.train->placement.shares, (std::vector<double>{1, 3, 2})) << "of the shards";
}

TEST(LoadCluster, ReportsEveryMistakeOfBothFilesAndTheFlagsAtOnce) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "jbo: x\ncluster:\n  ps: [localhost]\n  wrokers: [localhost:2223]\ntrain: t.yaml\n");
  files.write("t.yaml", "model: 3\nsteps: ten\nreplication: {staleness: 5}\n");
  const std::string overrides[] = {"train.stpes=5"};
  EXPECT_EQ(badConfigOf([&] { loadCluster("c.yaml", overrides); }),
            "c.yaml:1:1: error: unknown key 'jbo' - did you mean 'job'?\n"
            "  1 | jbo: x\n"
            "    | ^~~\n"
            "c.yaml:2:1: error: missing key 'worker' in 'cluster': the workers: addresses "
            "(host:port), or maps, or {count: 2}\n"
            "  2 | cluster:\n"
            "    | ^~~~~~~\n"
            "c.yaml:3:8: error: bad address 'localhost': an address is host:port\n"
            "  3 |   ps: [localhost]\n"
            "    |        ^~~~~~~~~\n"
            "c.yaml:4:3: error: unknown key 'wrokers' in 'cluster' - did you mean 'worker'?\n"
            "  4 |   wrokers: [localhost:2223]\n"
            "    |   ^~~~~~~\n"
            "--set train.stpes=5: error: unknown key 'stpes' in 'train' - did you mean 'steps'?\n"
            "t.yaml:1:8: error: expected a map for 'model', got '3'\n"
            "  1 | model: 3\n"
            "    |        ^\n"
            "t.yaml:2:8: error: expected a whole number for 'steps', got 'ten'\n"
            "  2 | steps: ten\n"
            "    |        ^~~\n"
            "t.yaml:3:15: error: 'staleness' has a meaning only with 'mode: bounded'\n"
            "  3 | replication: {staleness: 5}\n"
            "    |               ^~~~~~~~~");
}

TEST(LoadCluster, PointsAtTheLineThatNamesAMissingTrainFile) {
  const TemporaryFiles files;
  files.write("sub/c.yaml", std::string(kCluster) + "train: none.yaml\n");
  EXPECT_EQ(badConfigOf([] { loadCluster("sub/c.yaml", {}); }),
            "sub/c.yaml:4:8: error: cannot read sub/none.yaml: No such file or directory (2)\n"
            "  4 | train: none.yaml\n"
            "    |        ^~~~~~~~~");
}

TEST(LoadTrain, NamesLayersInOrderPastTheGivenNames) {
  const TemporaryFiles files;
  files.write(
      "t.yaml",
      "model:\n"
      "  input: {shape: [4]}\n"
      "  layers: [dense: {units: 1}, dense: {units: 2, name: dense_1}, relu, dense: {units: 3},\n"
      "           tanh: {name: t}, sigmoid: , flatten, dropout: {rate: 0.25}]\n"
      "  loss: mse\n");
  const std::vector<model::LayerSpec> layers = testing::readTrainFile("t.yaml").model.layers;
  std::vector<std::string> names;
  for (const model::LayerSpec& layer : layers) names.push_back(layer.name);
  EXPECT_EQ(names, (std::vector<std::string>{"dense", "dense_1", "relu", "dense_2", "t", "sigmoid",
                                             "flatten", "dropout"}));
  EXPECT_EQ(layers[2].type, "relu");
  EXPECT_EQ(model::layerText(layers[4]), "tanh name=t");
  EXPECT_EQ(model::layerText(layers[5]), "sigmoid");
  EXPECT_EQ(layers[6].type, "flatten");
  EXPECT_EQ(model::layerText(layers[7]), "dropout rate=0.25");
}

TEST(LoadTrain, ReadsTheModel) {
  const TemporaryFiles files;
  files.write("t.yaml",
              "model:\n"
              "  input: {shape: [2, 3]}\n"
              "  layers:\n"
              "    - dense: {units: 5, activation: tanh, use_bias: false, kernel_initializer: "
              "truncated_normal}\n"
              "  loss: binary_crossentropy\n"
              "  metrics: [accuracy]\n");
  const model::ModelSpec read = testing::readTrainFile("t.yaml").model;
  EXPECT_EQ(read.input_shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(model::layerText(read.layers.at(0)),
            "dense dense: units=5 activation=tanh use_bias=false "
            "kernel_initializer=truncated_normal");
  EXPECT_EQ(read.loss.kind, model::Loss::kSigmoidCrossEntropy);
  EXPECT_TRUE(read.accuracy);
  EXPECT_EQ(read.layers[0].mark.line, 4);
}

TEST(LoadTrain, AGraphIsAModelsOnlyLayer) {
  const TemporaryFiles files;
  files.write("t.yaml",
              "model:\n"
              "  input: {shape: [4]}\n"
              "  graph: {name: net, ops: [Relu: {name: y, inputs: [input]}], output: y}\n"
              "  loss: mse\n");
  const model::ModelSpec read = testing::readTrainFile("t.yaml").model;
  ASSERT_EQ(read.layers.size(), 1u);
  EXPECT_EQ(read.layers[0].type, "graph");
  EXPECT_EQ(read.layers[0].name, "net");
  EXPECT_EQ(read.layers[0].mark.line, 3);
}

TEST(ClusterYaml, ATildeIsTheHomeFolder) {
  const TemporaryFiles files;
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::setenv("HOME", "/home/somebody", 1);
  files.write("c.yaml",
              "run_dir: ~/runs\ncluster: {ps: [a:1], worker: [b:1]}\ntrain:\n"
              "  model: {input: {shape: [4]}, layers: [relu], loss: mse}\n"
              "  data: {train: {format: idx, images: ~/i, labels: ./~}}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.run_dir, "/home/somebody/runs");
  EXPECT_EQ(job.train->data.train.images, "/home/somebody/i");
  EXPECT_EQ(job.train->data.train.labels, "~");
  ::unsetenv("HOME");
  EXPECT_EQ(
      badConfigOf([] { loadCluster("c.yaml", {}); }).substr(0, 85),
      "c.yaml:1:10: error: '~' stands for HOME, which is not set: write the whole path\n  1 |");
  ::setenv("HOME", home.c_str(), 1);
}

TEST(ClusterYaml, MetricsWithoutDataToEvaluateAreAWarning) {
  const TemporaryFiles files;
  files.write("c.yaml",
              "cluster: {ps: [a:1], worker: [b:1]}\ntrain:\n"
              "  model: {input: {shape: [4]}, layers: [relu], loss: mse, metrics: [accuracy]}\n"
              "  data: {train: {format: digits}}\n");
  Report report;
  loadCluster("c.yaml", {}, report);
  EXPECT_TRUE(
      report.warnings().starts_with("c.yaml:3:59: warning: 'metrics' are computed on data.eval, "
                                    "and there is none: add 'eval' to 'data'\n"))
      << report.warnings();
  Report silent;
  loadCluster("c.yaml", std::vector<std::string>{"train.data.eval={format: digits}"}, silent);
  EXPECT_EQ(silent.warnings(), "");
}

}  // namespace dtf::cluster
