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
    "  loss: softmax_cross_entropy\n";

constexpr const char* kCluster =
    "cluster:\n"
    "  ps: [localhost:2221]\n"
    "  worker: [localhost:2223, localhost:2224]\n";

TrainSpec trainOf(const std::string& more) {
  const TemporaryFiles files;
  files.write("t.yaml", kModel + more);
  return testing::readTrainFile("t.yaml");
}

}  // namespace

TEST(LoadCluster, DefaultsAreThoseOfTheSpec) {
  const TemporaryFiles files;
  files.write("c.yaml", kCluster);
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.job, "job");
  EXPECT_EQ(job.run_dir, "runs/job");
  EXPECT_EQ(job.timeouts.lease_seconds, Timeouts().lease_seconds);
  EXPECT_FALSE(job.train);
  ASSERT_EQ(job.cluster.worker.size(), 2u);
  EXPECT_EQ(job.cluster.worker[1].address.str(), "localhost:2224");
  EXPECT_EQ(job.cluster.worker[1].mark.file, "c.yaml");
  EXPECT_EQ(job.cluster.worker[1].mark.line, 3);
  EXPECT_EQ(job.cluster.worker[1].mark.column, 28);
}

TEST(LoadCluster, ReadsEveryKey) {
  const TemporaryFiles files;
  files.write(
      "c.yaml",
      "job: mnist-1\nrun_dir: /tmp/r\n"
      "cluster:\n"
      "  ps:\n    - {address: 'a:auto', devices: [cpu:0], env: {OMP_NUM_THREADS: 2, EMPTY: ''}}\n"
      "  worker: [\"[::1]:5\", {address: b:1, threads: 3, devices: [cpu:0, cpu:1]}]\n"
      "launch: {via: local}\n"
      "timeouts: {start_seconds: 1, heartbeat_seconds: .5, lease_seconds: 3, step_seconds: 4,\n"
      "           finish_seconds: 5e1}\n");
  const JobSpec job = loadCluster("c.yaml", {});
  EXPECT_EQ(job.job, "mnist-1");
  EXPECT_EQ(job.run_dir, "/tmp/r");
  const TaskSpec& ps = job.cluster.ps.at(0);
  EXPECT_EQ(ps.address.port, 0);
  EXPECT_EQ(ps.devices, std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(ps.env, (std::map<std::string, std::string>{{"OMP_NUM_THREADS", "2"}, {"EMPTY", ""}}));
  EXPECT_EQ(job.cluster.worker.at(0).address.host, "::1");
  EXPECT_EQ(job.cluster.worker.at(0).threads, 0);
  EXPECT_EQ(job.cluster.worker.at(1).threads, 3);
  EXPECT_EQ(devicesOf(job.cluster.worker.at(0)), std::vector<std::string>{"cpu:0"});
  EXPECT_EQ(devicesOf(job.cluster.worker.at(1)), (std::vector<std::string>{"cpu:0", "cpu:1"}));
  EXPECT_EQ(job.timeouts.heartbeat_seconds, 0.5);
  EXPECT_EQ(job.timeouts.finish_seconds, 50);
}

TEST(LoadCluster, MetricsNeedAPortForEachTaskOfAHostAlone) {
  const TemporaryFiles files;
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:65535]}\nmetrics: {port: 65535}\n");
  EXPECT_THROW(loadCluster("c.yaml", {}), Error) << "worker/0 is there itself";
  files.write("c.yaml", "cluster: {ps: [a:1], worker: [b:1]}\nmetrics: {port: 65535}\n");
  EXPECT_EQ(loadCluster("c.yaml", {}).metrics->port, 65535);
}

TEST(LoadCluster, ReadsWhatALostPsCosts) {
  const TemporaryFiles files;
  constexpr std::string_view kTwoPs = "cluster: {ps: [a:1, a:2], worker: [b:1]}\n";
  const auto read = [&files](std::string_view text, std::vector<std::string> overrides = {}) {
    files.write("c.yaml", std::string(text));
    return loadCluster("c.yaml", overrides).durability.str();
  };
  EXPECT_EQ(read(kTwoPs), "checkpoint");
  for (const std::string durability : {"checkpoint", "replica", "snapshot: {every_steps: 12}"}) {
    const std::string line =
        "durability: " + (durability[0] == 's' ? "{" + durability + "}" : durability) + "\n";
    EXPECT_EQ(read(std::string(kTwoPs) + line), durability);
  }
  EXPECT_EQ(read(std::string(kTwoPs) + "durability: {replica: }\n"), "replica");
  EXPECT_EQ(read(kTwoPs, {"durability=replica"}), "replica");
  EXPECT_EQ(read(kTwoPs, {"durability.snapshot.every_steps=7"}), "snapshot: {every_steps: 7}");
}

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

TEST(LoadCluster, TakesTheTrainPartInPlaceAndChecksItAgainstTheCluster) {
  const TemporaryFiles files;
  files.write("c.yaml", std::string(kCluster) +
                            "train:\n"
                            "  model: {input: {shape: [2]}, layers: [relu], loss: mse}\n"
                            "  placement: {pins: {w: /job:ps/task:1}}\n"
                            "  replication: {mode: sync, total_num_replicas: 3}\n");
  const std::string report = badConfigOf([] { loadCluster("c.yaml", {}); });
  EXPECT_NE(report.find("c.yaml:6:25: error: there is no '/job:ps/task:1': the cluster has 1 ps"),
            std::string::npos)
      << report;
  EXPECT_NE(report.find(
                "c.yaml:7:49: error: 'total_num_replicas' must be the number of workers, 2, got 3"),
            std::string::npos)
      << report;
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

TEST(LoadTrain, WhatTheModelReadsFollowsFromTheFormatOfTheData) {
  const auto types = [](const std::string& train) {
    const model::ModelSpec model = trainOf("data: {train: {" + train + "}}\n").model;
    return std::pair(model.input_dtype, model.labels_dtype);
  };
  const auto pair = [](DType features, DType labels) { return std::pair(features, labels); };
  EXPECT_EQ(types("format: digits"), pair(DType::kUInt8, DType::kUInt8));
  EXPECT_EQ(types("format: synthetic, problem: friedman"), pair(DType::kFloat32, DType::kFloat32));
  EXPECT_EQ(types("format: synthetic, problem: linear"), pair(DType::kFloat32, DType::kInt32));
  EXPECT_EQ(types("format: csv, files: [a], label_column: l"),
            pair(DType::kFloat32, DType::kInt32));
  EXPECT_EQ(types("format: csv, files: [a], target_columns: [t]"),
            pair(DType::kFloat32, DType::kFloat32));
  EXPECT_EQ(types("format: npy, features: f, labels: l, features_as: pixels"),
            pair(DType::kUInt8, DType::kInt32));
  EXPECT_EQ(types("format: npz, archive: a, features: f, targets: t, features_as: indices"),
            pair(DType::kInt32, DType::kFloat32));
}

TEST(LoadTrain, ReadsWhatBecomesOfImagesAndHowOftenTheyAreRead) {
  const TrainSpec train =
      trainOf("epochs: 3\ndata: {augment: {flip_horizontal: true, crop_padding: 4}}\n");
  EXPECT_EQ(train.epochs, 3u);
  EXPECT_TRUE(train.data.augment.flip_horizontal);
  EXPECT_EQ(train.data.augment.crop_padding, 4);
  EXPECT_EQ(train.data.augment.text(), "flip_horizontal=true crop_padding=4");
  EXPECT_FALSE(trainOf("").data.augment.any());
}

TEST(LoadTrain, ReadsTheSettingsOfTables) {
  const DatasetSpec csv = trainOf(
                              "data: {train: {format: csv, files: [a.csv, b.csv], header: "
                              "false, delimiter: tab, label_column: 3, feature_columns: [1, "
                              "x], class_names: [u, v], max_bad_records: 7}}\n")
                              .data.train;
  EXPECT_EQ(csv.files.size(), 2u);
  EXPECT_FALSE(csv.csv.header);
  EXPECT_EQ(csv.csv.delimiter, '\t');
  EXPECT_EQ(csv.csv.label, "3");
  EXPECT_EQ(csv.csv.features, (std::vector<std::string>{"1", "x"}));
  EXPECT_EQ(csv.csv.class_names, (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(csv.csv.max_bad_records, 7);
  const DatasetSpec npz =
      trainOf("data: {train: {format: npz, archive: d.npz, features: f, targets: t}}\n").data.train;
  EXPECT_EQ(npz.npy.archive.path.filename(), "d.npz");
  EXPECT_EQ(npz.npy.features.path, "f") << "the name of an array is no path";
  EXPECT_EQ(npz.npy.targets.path, "t");
}

TEST(LoadTrain, TheEmbeddedDigitsAreTheDefaultData) {
  const DataSpec data = trainOf("").data;
  EXPECT_EQ(data.train.format, DatasetSpec::Format::kDigits);
  EXPECT_EQ(data.train.count, 10000);
  ASSERT_TRUE(data.eval);
  EXPECT_EQ(data.eval->count, 2000);
  EXPECT_EQ(trainOf("data: {batch_size: 7}\n").data.eval->count, 2000);
  EXPECT_EQ(trainOf("data: {eval: {format: digits, count: 5}}\n").data.eval->count, 5);
  EXPECT_FALSE(trainOf("data: {train: {format: digits}}\n").data.eval);
  EXPECT_EQ(trainOf("data: {train: {format: digits}, eval: {format: digits}}\n").data.eval->count,
            2000);
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
              "  loss: sigmoid_cross_entropy\n"
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

TEST(LoadTrain, ReadsOptimizersWithTheirDefaults) {
  using Kind = OptimizerSpec::Kind;
  EXPECT_EQ(trainOf("").optimizer, OptimizerSpec());
  const OptimizerSpec adagrad =
      trainOf("optimizer: {adagrad: {initial_accumulator_value: 0.2}}\n").optimizer;
  EXPECT_EQ(adagrad.kind, Kind::kAdagrad);
  EXPECT_EQ(adagrad.learning_rate, 0.01);
  EXPECT_EQ(adagrad.initial_accumulator_value, 0.2);
  EXPECT_EQ(trainOf("optimizer: adagrad\n").optimizer.kind, Kind::kAdagrad);
  const OptimizerSpec adam =
      trainOf("optimizer: {adam: {beta1: 0.5, beta2: 0, epsilon: 1e-4}}\n").optimizer;
  EXPECT_EQ(adam.kind, Kind::kAdam);
  EXPECT_EQ(adam.learning_rate, 0.001);
  EXPECT_EQ(adam.beta1, 0.5);
  EXPECT_EQ(adam.beta2, 0);
  EXPECT_EQ(adam.epsilon, 1e-4);
  EXPECT_EQ(
      trainOf("optimizer: {gradient_descent: {learning_rate: +.5}}\n").optimizer.learning_rate,
      0.5);
}

TEST(LoadTrain, ReadsEverySettingOfTheOtherOptimizers) {
  using Kind = OptimizerSpec::Kind;
  const auto read = [](const std::string& text) {
    return trainOf("optimizer: " + text + "\n").optimizer;
  };
  for (const char* name : {"momentum", "adadelta", "rmsprop", "ftrl", "lars", "lamb"}) {
    const OptimizerSpec spec = read(name);
    EXPECT_EQ(optimizerName(spec.kind), name);
    EXPECT_EQ(spec, defaultOptimizer(spec.kind)) << name;
  }
  EXPECT_EQ(read("rmsprop").epsilon, 1e-10);
  EXPECT_EQ(read("lamb").epsilon, 1e-6);

  OptimizerSpec momentum = defaultOptimizer(Kind::kMomentum);
  momentum.momentum = 0.5;
  momentum.use_nesterov = true;
  momentum.weight_decay = 0.1;
  momentum.clip_by_value = 2;
  momentum.clip_by_global_norm = 3;
  momentum.moving_average_decay = 0.999;
  EXPECT_EQ(read("{momentum: {momentum: 0.5, use_nesterov: true, weight_decay: 0.1, "
                 "clip_by_value: 2, clip_by_global_norm: 3, moving_average: {decay: 0.999}}}"),
            momentum);
  OptimizerSpec rmsprop = defaultOptimizer(Kind::kRmsProp);
  rmsprop.decay = 0.8;
  rmsprop.momentum = 0.7;
  rmsprop.epsilon = 0.1;
  rmsprop.centered = true;
  EXPECT_EQ(read("{rmsprop: {decay: 0.8, momentum: 0.7, epsilon: 0.1, centered: true}}"), rmsprop);
  OptimizerSpec ftrl = defaultOptimizer(Kind::kFtrl);
  ftrl.learning_rate = 0.5;
  ftrl.learning_rate_power = -1;
  ftrl.initial_accumulator_value = 0;
  ftrl.l1_regularization_strength = 0.1;
  ftrl.l2_regularization_strength = 0.2;
  ftrl.l2_shrinkage_regularization_strength = 0.3;
  EXPECT_EQ(read("{ftrl: {learning_rate: 0.5, learning_rate_power: -1, initial_accumulator_value: "
                 "0, l1_regularization_strength: 0.1, l2_regularization_strength: 0.2, "
                 "l2_shrinkage_regularization_strength: 0.3}}"),
            ftrl);
  OptimizerSpec lars = defaultOptimizer(Kind::kLars);
  lars.eeta = 0.02;
  lars.weight_decay = 0;
  EXPECT_EQ(read("{lars: {eeta: 0.02, weight_decay: 0}}"), lars);
  EXPECT_EQ(read("{adamw: {weight_decay: 0.004}}").weight_decay, 0.004);
  EXPECT_EQ(read("{adadelta: {rho: 0.9}}").rho, 0.9);
}

TEST(LoadTrain, ReadsLearningRateSchedules) {
  using Kind = LearningRateSchedule::Kind;
  const auto read = [](const std::string& text) {
    return trainOf("optimizer: {momentum: {learning_rate: {" + text + "}}}\n").optimizer;
  };
  OptimizerSpec spec = read("constant: {initial: 0.3, warmup_steps: 5}");
  EXPECT_EQ(spec.learning_rate, 0.3);
  EXPECT_EQ(spec.schedule, (LearningRateSchedule{.kind = Kind::kConstant, .warmup_steps = 5}));
  spec = read("exponential: {initial: 0.2, decay_steps: 10, decay_rate: 0.5, staircase: true}");
  EXPECT_EQ(spec.learning_rate, 0.2);
  EXPECT_EQ(
      spec.schedule,
      (LearningRateSchedule{
          .kind = Kind::kExponential, .decay_steps = 10, .decay_rate = 0.5, .staircase = true}));
  spec = read("polynomial: {initial: 0.2, decay_steps: 10, end: 0, power: 2, cycle: true}");
  EXPECT_EQ(spec.schedule, (LearningRateSchedule{.kind = Kind::kPolynomial,
                                                 .decay_steps = 10,
                                                 .end_learning_rate = 0,
                                                 .power = 2,
                                                 .cycle = true}));
  spec = read("cosine: {initial: 0.2, decay_steps: 10, alpha: 0.1}");
  EXPECT_EQ(spec.schedule,
            (LearningRateSchedule{.kind = Kind::kCosine, .decay_steps = 10, .alpha = 0.1}));
}

TEST(LoadTrain, ReadsTheRest) {
  const TrainSpec train = trainOf(
      "replication: {mode: sync, replicas_to_aggregate: 1, total_num_replicas: 2}\n"
      "placement: {strategy: greedy, pins: {softmax/weights: \"/job:ps/task:0\"}, partition: "
      "{min_bytes: 64}}\n"
      "steps: 7\neval: {every_steps: 2}\nreport: {every_steps: 3}\n"
      "data: {batch_size: 1000000, seed: 9223372036854775807}\n");
  EXPECT_EQ(train.replication.mode, ReplicationSpec::Mode::kSync);
  EXPECT_EQ(train.replication.replicas_to_aggregate, 1u);
  EXPECT_EQ(train.replication.total_num_replicas, 2u);
  EXPECT_EQ(train.placement.strategy, PlacementSpec::Strategy::kGreedy);
  EXPECT_EQ(train.placement.pins.at("softmax/weights"), "/job:ps/task:0");
  EXPECT_EQ(train.placement.partition_min_bytes, 64u);
  EXPECT_EQ(train.steps, 7u);
  EXPECT_EQ(train.eval_every_steps, 2u);
  EXPECT_EQ(train.report_every_steps, 3u);
  EXPECT_EQ(train.data.batch_size, 1000000);
  EXPECT_EQ(train.data.seed, 9223372036854775807u);
  EXPECT_EQ(trainOf("placement: {partition: none}\n").placement.partition_min_bytes, 0u);
  EXPECT_EQ(trainOf("placement: {strategy: round_robin}\n").placement.partition_min_bytes,
            uint64_t{4} << 20);
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
  EXPECT_TRUE(report.warnings().starts_with(
      "c.yaml:3:59: warning: 'metrics' are of evaluations, and there is nothing to evaluate: add "
      "'eval' to 'data'\n"))
      << report.warnings();
  Report silent;
  loadCluster("c.yaml", std::vector<std::string>{"train.data.eval={format: digits}"}, silent);
  EXPECT_EQ(silent.warnings(), "");
}

}  // namespace dtf::cluster
