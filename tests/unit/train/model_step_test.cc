#include "common/train/model_step.h"

#include <gtest/gtest.h>

#include "common/arena/initial_value.h"
#include "common/base/error.h"
#include "common/train/initial_values.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

// The gradient of the mean loss against the finite difference of the loss itself.
TEST(ModelStep, GradientsAreTheSlopeOfTheLoss) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  model::ModelSpec spec = model::softmaxModel();
  spec.layers = {model::flatten(), model::dense("hidden", 8, model::Activation::kTanh),
                 model::dense("softmax", 10)};
  const model::ModelGraph model = model::buildTrainingGraph(spec, 20);
  const ComputeDevice on{&device, &kernels};
  ModelStep step(model, trainingPart(model, placeModel(model.graph, {}, 2, 0), 0, on), on);
  data::BatchReader reader(digits(data::DigitStream::kTrain, 20), 20, 1);
  data::Batch batch(reader.dataset().parts(), 20);
  reader.read(0, batch);
  step.bindExamples(batch, 0);
  std::vector<Tensor> values;
  std::vector<Tensor> gradients;
  for (uint32_t i = 0; i < model.variables.size(); ++i) {
    const Shape& shape = model.graph.spec(model.variables[i].value).shape;
    values.push_back(arena::initialValue("glorot_uniform", shape, 1, i));
    gradients.emplace_back(DType::kFloat32, shape);
    step.bindValue(i, values[i].as<float>().data());
    step.bindGradient(i, gradients[i].as<float>().data());
  }
  for (uint32_t i = 0; i < values.size(); ++i) {
    const size_t element = values[i].as<float>().size() / 2;
    float& value = values[i].as<float>()[element];
    const float before = value;
    step.run();
    const float slope = gradients[i].as<float>()[element];
    constexpr float kDelta = 1e-2F;
    value = before + kDelta;
    step.run();
    const float above = step.loss();
    value = before - kDelta;
    step.run();
    EXPECT_NEAR((above - step.loss()) / (2 * kDelta), slope, 1e-4 + 0.02 * std::abs(slope))
        << "variable " << i;
    value = before;
  }
}

// Returns the loss of one batch with the masks of one key.
float lossWithKey(ModelStep& step, uint64_t seed, uint64_t batch) {
  step.setRandomKey(seed, batch);
  step.run();
  return step.loss();
}

TEST(ModelStep, DrawsItsMasksFromTheSeedAndTheBatch) {
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice device;
  model::ModelSpec spec = model::softmaxModel();
  spec.layers = {model::flatten(), model::dropout("dropout", 0.5), model::dense("softmax", 10)};
  const model::ModelGraph model = model::buildTrainingGraph(spec, 20);
  const ComputeDevice on{&device, &kernels};
  ModelStep step(model, trainingPart(model, placeModel(model.graph, {}, 2, 0), 0, on), on);
  data::BatchReader reader(digits(data::DigitStream::kTrain, 20), 20, 1);
  data::Batch batch(reader.dataset().parts(), 20);
  reader.read(0, batch);
  step.bindExamples(batch, 0);
  const Tensor weights = arena::initialValue("glorot_uniform", Shape{784, 10}, 1, 0);
  const Tensor biases(DType::kFloat32, Shape{10});
  Tensor weights_gradient(DType::kFloat32, Shape{784, 10});
  Tensor biases_gradient(DType::kFloat32, Shape{10});
  step.bindValue(0, weights.as<float>().data());
  step.bindValue(1, biases.as<float>().data());
  step.bindGradient(0, weights_gradient.as<float>().data());
  step.bindGradient(1, biases_gradient.as<float>().data());
  const float loss = lossWithKey(step, 1, 2);
  // The batches of two workers in one step have different numbers, so their masks differ.
  const uint64_t first = cluster::globalBatch(7, 0, 0, 2, 2),
                 second = cluster::globalBatch(7, 0, 1, 2, 2);
  EXPECT_NE(lossWithKey(step, 1, first), lossWithKey(step, 1, second));
  EXPECT_NE(lossWithKey(step, 2, 2), loss);
  EXPECT_EQ(lossWithKey(step, 1, 2), loss);
}

}  // namespace
}  // namespace dtf::train
