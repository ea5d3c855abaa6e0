// The jobs of configs/jobs that need no files, against what is known beforehand of their data.

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "common/cluster/cluster_yaml.h"
#include "common/data/open_dataset.h"
#include "common/data/synthetic.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

cluster::TrainSpec shipped(const std::string& name) {
  return cluster::loadTrain(std::filesystem::path(DTF_SOURCE_ROOT) / "configs/jobs" / name, {});
}

Evaluation trained(const cluster::TrainSpec& train) {
  const auto open = [&](const cluster::DatasetSpec& spec, bool eval) {
    return data::openDataset(spec, train.data.seed, eval);
  };
  const JobResult job =
      runJob(train, {2, 2}, open(train.data.train, false), open(train.data.eval.value(), true));
  return job.evaluation.value();
}

// Noise of variance 1 is left, of a variance of 24.8: R^2 is 1 - loss / 24.8.
TEST(ShippedJobs, RegressionComesNearTheNoise) {
  const double loss = trained(shipped("friedman_regression.yaml")).loss;
  std::printf("mean squared error %.3f, R^2 %.4f\n", loss, 1 - loss / 24.8);
  EXPECT_GT(loss, 0.95);
  EXPECT_LT(loss, 1.2);
}

// The rule behind the labels is right for 0.89 of them: see synthetic_test.cc.
TEST(ShippedJobs, OneUnitTellsTwoClassesAsWellAsTheRule) {
  const double accuracy = *trained(shipped("linear_binary.yaml")).accuracy;
  std::printf("logistic regression: accuracy %.4f\n", accuracy);
  EXPECT_GT(accuracy, 0.875);
  EXPECT_LT(accuracy, 0.915);
}

TEST(ShippedJobs, ASupportVectorMachineDoesSo) {
  const double accuracy = *trained(shipped("linear_svm.yaml")).accuracy;
  std::printf("support vector machine: accuracy %.4f\n", accuracy);
  EXPECT_GT(accuracy, 0.875);
}

// Guessing has a loss of ln 2 = 0.69; rules that are right for 0.89 of the tags about 0.27.
TEST(ShippedJobs, TagsAreLearntEachByItself) {
  const double loss = trained(shipped("tags_multilabel.yaml")).loss;
  std::printf("tags: loss %.4f\n", loss);
  EXPECT_LT(loss, 0.29);
  EXPECT_GT(loss, 0.22);
}

TEST(ShippedJobs, AThousandClassesAreLearnt) {
  cluster::TrainSpec train = shipped("linear_binary.yaml");
  train.model.input_shape = {data::kCentreFeatures};
  train.model.loss.kind = model::Loss::kSoftmaxCrossEntropy;
  train.model.layers = {model::dense("logits", 1000)};
  train.data.train.problem = cluster::Problem::kCentres;
  train.data.train.classes = 1000;
  train.data.eval = train.data.train;
  train.data.eval->count = 2000;
  train.optimizer.learning_rate = 0.05;
  train.steps = 600;
  const double accuracy = *trained(train).accuracy;
  std::printf("1000 classes: accuracy %.4f\n", accuracy);
  EXPECT_GT(accuracy, 0.95);
}

}  // namespace
}  // namespace dtf::train
