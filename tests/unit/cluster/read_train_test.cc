// The keys of a TRAIN.yaml apart from data, model and optimizer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cluster/read_train.h"
#include "common/yaml/yaml_tree.h"
#include "tests/unit/cluster/train_of.h"

namespace dtf::cluster {
namespace {

TEST(ReadTrain, ReadsTheRest) {
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

// The weights of the hosts imply a cut by bytes.
TEST(ReadTrain, SharesAndAutoAreStrategies) {
  const PlacementSpec weighted = trainOf("placement: {shares: [0.5]}\n").placement;
  EXPECT_EQ(weighted.strategy, PlacementSpec::Strategy::kEven);
  EXPECT_EQ(weighted.shares, std::vector<double>{0.5});
  for (const char* text : {"placement: auto\n", "placement: {strategy: auto}\n",
                           "replication: {mode: sync}\nplacement: auto\n"})
    EXPECT_EQ(trainOf(text).placement.strategy, PlacementSpec::Strategy::kAuto) << text;
  EXPECT_EQ(trainOf("placement: {strategy: auto, among: [workers]}\n").placement.among,
            std::vector<std::string>{"workers"});
}

// No metrics: the scalars alone ask for evaluations.
TEST(ReadTrain, WarnsOfScalarsWithoutDataToEvaluate) {
  const testing::TemporaryFiles files;
  files.write("t.yaml",
              "model:\n"
              "  input: {shape: [3]}\n"
              "  layers: [{dense: {units: 2}}]\n"
              "  loss: sparse_categorical_crossentropy\n"
              "  scalars: [worst]\n"
              "data: {train: {format: digits}, batch_size: 5}\n");
  yaml::Report report;
  const auto file = yaml::parseYamlFile("t.yaml", nullptr, report);
  ASSERT_TRUE(file.has_value());
  readTrain(*file, {}, report);
  EXPECT_THAT(report.warnings(),
              ::testing::HasSubstr("t.yaml:5:3: warning: 'scalars' are computed on data.eval, and "
                                   "there is none: add 'eval' to 'data'"));
}

}  // namespace
}  // namespace dtf::cluster
