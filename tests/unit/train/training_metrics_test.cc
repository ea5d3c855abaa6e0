#include "common/train/training_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/arena/initial_value.h"
#include "common/train/initial_values.h"
#include "common/train/tower.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

constexpr int64_t kExamples = 20;

// A model with layers that evaluate differently: dropout, and a norm with statistics of the batch.
model::ModelSpec spec() {
  model::ModelSpec spec = model::softmaxModel();
  spec.layers = {model::flatten(), model::dense("hidden", 16),
                 model::layerOf("batch_normalization", "{}", "norm"),
                 model::layerOf("dropout", "{rate: 0.5}", "dropout"), model::dense("softmax", 10)};
  spec.accuracy = true;
  spec.metrics = {model::MetricKind::kTopK};
  return spec;
}

class TrainingMetricsTest : public ::testing::Test {
 protected:
  TrainingMetricsTest()
      : reader_(digits(data::DigitStream::kTrain, kExamples), kExamples, 1),
        batch_(reader_.dataset().parts(), kExamples) {
    reader_.read(0, batch_);
    const model::ModelGraph model = model::buildTrainingGraph(spec(), kExamples);
    for (uint32_t i = 0; i < model.variables.size(); ++i) {
      const graph::Node& variable = model.graph.node(model.variables[i].value.node);
      owned_.push_back(arena::initialValue(variable.attribute<std::string>("initializer"),
                                           variable.outputs[0].shape, 1, i));
    }
    for (const Tensor& value : owned_) values_.push_back(value.as<float>().data());
  }

  // The loss from the training's own step.
  float trainedLoss(uint64_t number) {
    const model::ModelGraph model = model::buildTrainingGraph(spec(), kExamples);
    const ComputeDevice on{&device_, &kernels_};
    ModelStep step(model, trainingPart(model, placeModel(model.graph, {}, 1, 0), 0, on), on);
    step.bindExamples(batch_, 0);
    step.setRandomKey(7, number);
    std::vector<std::vector<float>> gradients;
    for (uint32_t i = 0; i < values_.size(); ++i) {
      gradients.emplace_back(owned_[i].as<float>().size());
      step.bindValue(i, values_[i]);
      step.bindGradient(i, gradients.back().data());
    }
    step.run();
    return step.loss();
  }

  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  data::BatchReader reader_;
  data::Batch batch_;
  std::vector<Tensor> owned_;
  std::vector<const float*> values_;
};

TEST_F(TrainingMetricsTest, AreOfTheBatchAsTrainingSeesIt) {
  TrainingMetrics metrics(spec(), kExamples, 1, kernels_, device_);
  for (const uint64_t number : {3, 4}) {
    const Evaluation measured = metrics.measure(batch_, values_, 7, number);
    EXPECT_NEAR(measured.loss, trainedLoss(number), 1e-5) << number;
    EXPECT_EQ(measured.examples, kExamples);
    const double hits = measured.accuracy.value() * kExamples;
    EXPECT_NEAR(hits, std::round(hits), 1e-4);
    ASSERT_EQ(measured.metrics.size(), 1u);
    EXPECT_GE(measured.metrics[0].value.value(), *measured.accuracy) << "top 5";
  }
  EXPECT_NE(metrics.measure(batch_, values_, 7, 3).loss,
            metrics.measure(batch_, values_, 7, 4).loss)
      << "another mask";
}

// A batch's loss is the mean over its shares, each normalised by its own statistics.
TEST_F(TrainingMetricsTest, OfSeveralTowersAreOfTheirSharesTogether) {
  TrainingMetrics metrics(spec(), kExamples, 2, kernels_, device_);
  const Evaluation measured = metrics.measure(batch_, values_, 7, 3);
  ModelStep share(model::buildForwardGraph(spec(), kExamples / 2), kernels_, device_);
  for (uint32_t i = 0; i < values_.size(); ++i) share.bindValue(i, values_[i]);
  double loss = 0;
  for (uint32_t tower = 0; tower < 2; ++tower) {
    share.bindExamples(batch_, tower * share.batchSize());
    share.setRandomKey(7, maskNumber(3, tower));
    share.run();
    loss += share.loss();
  }
  EXPECT_NEAR(measured.loss, loss / 2, 1e-6);
  EXPECT_EQ(measured.examples, kExamples);
  const double hits = measured.accuracy.value() * kExamples;
  EXPECT_NEAR(hits, std::round(hits), 1e-4);
  ASSERT_EQ(measured.metrics.size(), 1u);
  EXPECT_GE(measured.metrics[0].value.value(), *measured.accuracy) << "top 5";
}

}  // namespace
}  // namespace dtf::train
