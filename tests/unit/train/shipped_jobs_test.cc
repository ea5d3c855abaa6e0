// The jobs of configs/jobs that need no files, against known properties of their data. The largest
// are made smaller: they learn the same, and sanitizers take ten times as long.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"
#include "common/data/open_dataset.h"
#include "common/data/synthetic.h"
#include "common/model/model_table.h"
#include "tests/support/train_file.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

cluster::TrainSpec shipped(const std::string& name, const std::vector<std::string>& smaller = {}) {
  return testing::readTrainFile(std::filesystem::path(DTF_SOURCE_ROOT) / "configs/jobs" / name,
                                smaller);
}

Evaluation trained(const cluster::TrainSpec& train) {
  const auto open = [&](const cluster::DatasetSpec& spec, bool eval) {
    return data::openDataset(spec, train.data.seed, eval);
  };
  const JobResult job =
      runJob(train, {2, 2}, open(train.data.train, false), open(train.data.eval.value(), true));
  return job.evaluation.value();
}

double metricOf(const Evaluation& evaluation, const std::string& name) {
  for (const MetricValue& metric : evaluation.metrics)
    if (metric.name == name) return metric.value.value();
  ADD_FAILURE() << name << " is not there";
  return 0;
}

// Noise of variance 1 is left of a variance of 24.8: R^2 is 1 - loss / 24.8. The loss of a straight
// line is about 6.
TEST(ShippedJobs, RegressionComesNearTheNoise) {
  const Evaluation evaluation = trained(
      shipped("friedman_regression.yaml",
              {"model.layers=[normalization: {mean: [0.5], std: [0.29]}, dense: {units: 32, "
               "activation: relu}, "
               "dense: {units: 32, activation: relu}, dense: {units: 1}]",
               "optimizer={adam: {learning_rate: {cosine: {initial: 0.03, decay_steps: 800}}}}",
               "steps=800", "eval={}"}));
  const double loss = evaluation.loss;
  std::printf("mean squared error %.3f, R^2 %.4f\n", loss, metricOf(evaluation, "r2_score"));
  EXPECT_NEAR(metricOf(evaluation, "r2_score"), 1 - loss / 24.8, 0.01);
  // The mean size of normal errors is sqrt(2 / pi) of their root mean square.
  EXPECT_NEAR(metricOf(evaluation, "mean_absolute_error"), 0.798 * std::sqrt(loss), 0.05);
  EXPECT_GT(loss, 0.95);
  EXPECT_LT(loss, 1.6);
}

// The rule behind the labels is right for 0.89 of them: see synthetic_test.cc.
TEST(ShippedJobs, OneUnitTellsTwoClassesAsWellAsTheRule) {
  const Evaluation evaluation = trained(shipped("linear_binary.yaml"));
  const double accuracy = *evaluation.accuracy;
  EXPECT_GT(metricOf(evaluation, "auc"), 0.94);
  std::printf("logistic regression: accuracy %.4f\n", accuracy);
  EXPECT_GT(accuracy, 0.875);
  EXPECT_LT(accuracy, 0.915);
}

TEST(ShippedJobs, ASupportVectorMachineDoesSo) {
  const double accuracy = *trained(shipped("linear_svm.yaml")).accuracy;
  std::printf("support vector machine: accuracy %.4f\n", accuracy);
  EXPECT_GT(accuracy, 0.875);
}

// The rule behind the clicks is right 0.957 of the time: see clicks_test.cc. A model without users
// and items is right for some two thirds.
TEST(ShippedJobs, ARecommenderLearnsWhoLikesWhat) {
  const std::vector<std::string> smaller = {"data.eval.count=4000"};
  const double accuracy = *trained(shipped("clicks_wide_deep.yaml", smaller)).accuracy;
  std::vector<std::string> numbers = smaller;
  numbers.push_back("model.layers=[dense: {units: 8, activation: relu}, dense: {units: 1}]");
  const double of_numbers = *trained(shipped("clicks_wide_deep.yaml", numbers)).accuracy;
  std::printf("clicks: accuracy %.4f, of the numbers alone %.4f\n", accuracy, of_numbers);
  EXPECT_GT(accuracy, 0.90);
  EXPECT_LT(accuracy, 0.95);
  EXPECT_LT(of_numbers, 0.75);
}

// Guessing has a loss of ln 2 = 0.69; rules that are right for 0.89 of the tags have about 0.27.
TEST(ShippedJobs, TagsAreLearntEachByItself) {
  const Evaluation evaluation = trained(shipped("tags_multilabel.yaml"));
  const double loss = evaluation.loss;
  for (const char* name : {"precision", "recall"}) EXPECT_GT(metricOf(evaluation, name), 0.8);
  std::printf("tags: loss %.4f\n", loss);
  EXPECT_LT(loss, 0.29);
  EXPECT_GT(loss, 0.22);
}

TEST(ShippedJobs, ManyClassesAreLearnt) {
  const Evaluation evaluation =
      trained(shipped("many_classes.yaml",
                      {"data.train.classes=500", "data.eval.classes=500", "data.train.count=5000",
                       "data.eval.count=1000", "model.layers=[dense: {units: 500, name: logits}]",
                       "steps=300", "data.batch_size=50"}));
  std::printf("500 classes: accuracy %.4f, top 5 %.4f\n", *evaluation.accuracy,
              metricOf(evaluation, "sparse_top_5_categorical_accuracy"));
  EXPECT_GT(*evaluation.accuracy, 0.9);
  EXPECT_GT(metricOf(evaluation, "sparse_top_5_categorical_accuracy"), 0.98);
}

// Counts the trained parameters, and the moving statistics of its 53 batch norms.
TEST(ShippedJobs, TheResNet50HasItsParameters) {
  const model::ModelTable table = model::tableOf(shipped("imagenet_resnet50.yaml").model);
  EXPECT_EQ(table.parameters, 25'557'032u + 53'120u);
  EXPECT_NEAR(static_cast<double>(table.flops), 8.2e9, 0.2e9) << "4.1e9 multiply-adds";
  const auto rows = [&table](const std::string& path) {
    return std::ranges::count(table.layers, path, &model::LayerRow::path);
  };
  EXPECT_EQ(rows("layer3/5/conv2"), 1);
  EXPECT_EQ(rows("layer4/0/shortcut/0"), 1);
}

}  // namespace
}  // namespace dtf::train
