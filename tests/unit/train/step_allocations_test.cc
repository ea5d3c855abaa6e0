// A training step allocates nothing on the heap, in any thread. compiled_step_test.cc has the case
// of a perceptron.

#include <gtest/gtest.h>

#include "common/arena/initial_value.h"
#include "common/train/initial_values.h"
#include "common/train/model_step.h"
#include "common/train/tower_group.h"
#include "tests/unit/runtime/count_allocations.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

constexpr int64_t kBatch = 4;

// Like LeNet: convolutions of both sizes, normalised, both kinds of pooling, and dropout.
model::ModelSpec convolutionalModel() {
  using model::layerOf;
  model::ModelSpec spec = model::softmaxModel();
  spec.layers = {layerOf("conv2d", "{filters: 6, kernel_size: 5, padding: same}", "conv1"),
                 layerOf("batch_normalization", "{}", "norm1"),
                 model::activation("relu1", model::Activation::kRelu),
                 layerOf("max_pooling2d", "{pool_size: 2}", "pool1"),
                 layerOf("conv2d", "{filters: 16, kernel_size: 3}", "conv2"),
                 layerOf("batch_normalization", "{}", "norm2"),
                 model::activation("relu2", model::Activation::kRelu),
                 layerOf("average_pooling2d", "{pool_size: 2}", "pool2"),
                 model::flatten(),
                 model::dense("hidden", 32, model::Activation::kRelu),
                 model::dropout("dropout", 0.5),
                 model::dense("softmax", 10)};
  return spec;
}

// A training step with values and gradients of its own.
struct BoundStep {
  BoundStep(const model::ModelGraph& model, const ComputeDevice& on)
      : step(model, trainingPart(model, placeModel(model.graph, {}, 1, 0), 0, on), on) {
    for (uint32_t i = 0; i < model.variables.size(); ++i) {
      const Shape& shape = model.graph.spec(model.variables[i].value).shape;
      values.push_back(arena::initialValue("glorot_uniform", shape, 1, i));
      gradients.emplace_back(DType::kFloat32, shape);
      step.bindValue(i, values[i].as<float>().data());
      step.bindGradient(i, gradients[i].as<float>().data());
    }
  }

  void run(uint64_t number, data::BatchReader& reader, data::Batch& batch) {
    reader.read(number, batch);
    step.bindExamples(batch, 0);
    step.setRandomKey(1, number);
    step.run();
  }

  std::vector<Tensor> values;
  std::vector<Tensor> gradients;
  ModelStep step;
};

TEST(StepAllocations, AConvolutionalNetworkTakesNothingFromTheHeapByOneThreadOrTwo) {
  runtime::CpuDevice device;
  runtime::ComputePool two(2);
  runtime::testing::awaitThreads(two);
  const model::ModelGraph model = model::buildTrainingGraph(convolutionalModel(), kBatch);
  data::BatchReader reader(digits(data::DigitStream::kTrain, 20), kBatch, 1);
  data::Batch batch(reader.dataset().parts(), kBatch);
  for (const Isa isa : supportedIsas()) {
    for (runtime::ComputePool* pool : {static_cast<runtime::ComputePool*>(nullptr), &two}) {
      runtime::Processor cpu(isa, pool);
      cpu.part_work = 1;  // splits all work that can be split
      runtime::KernelTable kernels;
      runtime::registerCpuKernels(kernels, cpu);
      BoundStep bound(model, {&device, &kernels});
      bound.run(0, reader, batch);
      const runtime::testing::CountAllocations allocations;
      bound.run(1, reader, batch);
      EXPECT_EQ(allocations.count(), 0) << isaName(isa) << ", threads: " << cpu.threads();
      EXPECT_GT(bound.step.loss(), 0);
    }
  }
}

TEST(StepAllocations, TowersThatShareABatchTakeNothingFromTheHeap) {
  cluster::TrainSpec train = softmaxJob(1);
  train.model = convolutionalModel();
  train.data.batch_size = 2 * kBatch;
  BoundParameters parameters(train);
  const runtime::KernelTable kernels = cpuKernels();
  runtime::CpuDevice first(0), second(1);
  runtime::ComputePool two(2);
  runtime::testing::awaitThreads(two);
  const model::ModelGraph share = trainingGraphOf(shareOf(train, 2));
  const engine::TaskPart part =
      trainingPart(share, placeModel(share.graph, {}, 1, 0), 0, {&first, &kernels});
  TowerGroup towers(share, part, {{{&first, &kernels}, {&second, &kernels}}, &two});
  data::BatchReader reader(digits(data::DigitStream::kTrain, 20), 2 * kBatch, 1);
  data::Batch batch(reader.dataset().parts(), 2 * kBatch);
  reader.read(0, batch);
  towers.compute({batch, 1, 0}, parameters.binding());
  const runtime::testing::CountAllocations allocations;
  const float loss = towers.compute({batch, 1, 1}, parameters.binding());
  EXPECT_EQ(allocations.count(), 0);
  EXPECT_GT(loss, 0);
}

}  // namespace
}  // namespace dtf::train
