#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "common/cluster/read_train.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {
namespace {

TEST(CheckpointKeys, TheySayWhoHasTheFiles) {
  const testing::TemporaryFiles files;
  const auto read = [&files](const std::string& checkpoint) {
    files.write("c.yaml",
                "cluster: {ps: [a:1], worker: [b:1]}\n"
                "train:\n"
                "  model: {input: {shape: [2]}, layers: [dense: {units: 1}], loss: mse}\n"
                "  checkpoint: " +
                    checkpoint + "\n");
    return loadCluster("c.yaml", {}).train->checkpoint.value();
  };
  EXPECT_FALSE(read("{every_steps: 10}").gather);
  const CheckpointSpec gathers = read("{gather: true}");
  EXPECT_TRUE(gathers.gather);
  EXPECT_EQ(gathers.every_seconds, 600);
  EXPECT_EQ(gathers.mark.str(), "c.yaml:4:3") << "of the key";
  EXPECT_FALSE(gathers.stay);
  EXPECT_TRUE(read("{stay: true}").stay);
  EXPECT_TRUE(read("{gather: true, stay: false}").gather);
  try {
    read("{gather: true, stay: true}");
    ADD_FAILURE() << "it is read";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("c.yaml:4:36: error: 'gather' and 'stay' can't both be true"),
              std::string::npos)
        << error.message();
  }
}

constexpr char kEvaluated[] =
    "cluster: {ps: [a:1], worker: [b:1]}\n"
    "train:\n"
    "  model: {input: {shape: [28, 28, 1]}, layers: [flatten, dense: {units: 10}], loss: "
    "softmax_cross_entropy, metrics: [accuracy]}\n"
    "  data: {train: {format: digits}, eval: {format: digits}}\n"
    "  eval: {every_steps: 10}\n";

TrainSpec trainWithKeys(const std::string& more) {
  const testing::TemporaryFiles files;
  files.write("c.yaml", kEvaluated + more);
  return *loadCluster("c.yaml", {}).train;
}

// The ps may run where they don't see the chief's files.
TEST(CheckpointKeys, AFileWithoutTheKeySavesAtTheChief) {
  const CheckpointSpec saved = trainWithKeys("").checkpoint.value();
  EXPECT_TRUE(saved.gather);
  EXPECT_EQ(saved.every_seconds, 600);
  EXPECT_EQ(saved.first_seconds, 60);
  EXPECT_EQ(saved.every_steps, 0u);
  EXPECT_FALSE(trainWithKeys("  checkpoint: none\n").checkpoint.has_value());
}

TEST(CheckpointKeys, AnIntervalOfTheFileIsObeyedFromTheStart) {
  EXPECT_EQ(trainWithKeys("  checkpoint: {keep: 2}\n").checkpoint->first_seconds, 60);
  EXPECT_EQ(trainWithKeys("  checkpoint: {every_steps: 9}\n").checkpoint->every_seconds, 0);
  for (const int seconds : {600, 3600})
    EXPECT_EQ(trainWithKeys(fmt::format("  checkpoint: {{every_seconds: {}}}\n", seconds))
                  .checkpoint->first_seconds,
              seconds);
}

TEST(CheckpointKeys, TheBestIsByAFigureOfTheEvaluations) {
  EXPECT_EQ(trainWithKeys("  checkpoint: {keep_best: accuracy}\n").checkpoint->keep_best,
            "accuracy");
  const std::string mistake =
      testing::badConfigOf([] { trainWithKeys("  checkpoint: {keep_best: auc}\n"); });
  EXPECT_NE(mistake.find("c.yaml:6:27: error: the evaluations have no 'auc' (they have loss, "
                         "accuracy): add it to model.metrics"),
            std::string::npos)
      << mistake;
}

TEST(CheckpointKeys, AScalarIsNoMetricToStopBy) {
  const testing::TemporaryFiles files;
  const auto mistake = [&](const std::string& more) {
    files.write("t.yaml",
                "model:\n"
                "  input: {shape: [3]}\n"
                "  layers: [{dense: {units: 2}}]\n"
                "  loss: sparse_categorical_crossentropy\n"
                "  scalars: [worst]\n"
                "data: {train: {format: digits}, eval: {format: digits}, batch_size: 5}\n"
                "eval: {every_steps: 5}\n" +
                    more);
    return testing::badConfigOf([] {
      yaml::Report report;
      const auto file = yaml::parseYamlFile("t.yaml", nullptr, report);
      readTrain(*file, {}, report);
      report.throwIfAny();
    });
  };
  for (const char* more : {"early_stopping: {metric: worst, patience: 3}\n",
                           "checkpoint: {keep_best: worst, every_steps: 5}\n"})
    EXPECT_NE(mistake(more).find("error: 'worst' is one of model.scalars, of which dtf can't tell "
                                 "whether more is better: name one of loss\n"),
              std::string::npos)
        << mistake(more);
}

TEST(CheckpointKeys, EarlyStoppingHasTheLossAsItsMetric) {
  const EarlyStoppingSpec plain =
      trainWithKeys("  early_stopping: {patience: 3}\n").early_stopping.value();
  EXPECT_EQ(plain.metric, "loss");
  EXPECT_EQ(plain.patience, 3u);
  EXPECT_EQ(plain.min_delta, 0);
  EXPECT_FALSE(trainWithKeys("").early_stopping.has_value());
  const std::string mistake = testing::badConfigOf(
      [] { trainWithKeys("  early_stopping: {patience: 3}\n  checkpoint: none\n"); });
  EXPECT_NE(mistake.find("c.yaml:6:3: error: 'early_stopping' saves a checkpoint at its end"),
            std::string::npos)
      << mistake;
}

}  // namespace
}  // namespace dtf::cluster
