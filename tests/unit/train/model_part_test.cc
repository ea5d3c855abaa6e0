#include "common/train/model_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/standard_ops.h"
#include "common/train/initial_values.h"
#include "common/train/model_step.h"
#include "tests/unit/runtime/count_allocations.h"
#include "tests/unit/train/job.h"

namespace dtf::train {
namespace {

using RunCounts = std::map<std::string, int>;  // by op

class CountedKernel final : public runtime::Kernel {
 public:
  CountedKernel(std::unique_ptr<runtime::Kernel> kernel, int& runs)
      : kernel_(std::move(kernel)), runs_(runs) {}
  void run(const runtime::KernelArguments& arguments) override {
    ++runs_;
    kernel_->run(arguments);
  }
  size_t workspaceBytes() const override { return kernel_->workspaceBytes(); }
  void prepare(runtime::Device& device) override { kernel_->prepare(device); }

 private:
  std::unique_ptr<runtime::Kernel> kernel_;
  int& runs_;
};

// Single ops only: a fused kernel would hide the ops in it.
runtime::KernelTable countedKernels(const runtime::KernelTable& kernels, RunCounts& runs) {
  runtime::KernelTable counted;
  for (const std::string& op : kernels.ops(runtime::DeviceType::kCpu)) {
    if (graph::standardOps().find(op) == nullptr) continue;
    counted.add(op, runtime::DeviceType::kCpu, [&](const runtime::Operation& operation) {
      return std::make_unique<CountedKernel>(kernels.make(operation, runtime::DeviceType::kCpu),
                                             runs[operation.name]);
    });
  }
  return counted;
}

// loss = mean((sigmoid(xw) + sigmoid(xw)) * tanh([[1, 1], [2, 2]])); nothing reads the labels.
model::ModelGraph redundantModel() {
  model::ModelGraph model{.graph = graph::Graph(graph::standardOps())};
  graph::Builder b(model.graph);
  model.features = b.placeholder("x", DType::kFloat32, {2, 2});
  model.labels = b.placeholder("labels", DType::kInt32, {2});
  const graph::Output weights = b.variable("w", {2, 2});
  const graph::Output rows = b.concat({b.constant({1, 2}, 1), b.constant({1, 2}, 2)}, 0);
  const graph::Output first = b.sigmoid(b.matMul(model.features, weights));
  const graph::Output second = b.sigmoid(b.matMul(model.features, weights));
  model.logits = b.mul(b.add(first, second), b.tanh(rows));
  b.relu(model.logits);  // nothing reads it
  model.loss = model.data_loss = b.mean(model.logits);
  const graph::Output gradient =
      graph::addGradients(model.graph, model.loss, std::array{weights})[0];
  model.variables.push_back({weights, gradient, b.applyGradient(weights, gradient), std::nullopt});
  return model;
}

class ModelPartTest : public ::testing::Test {
 protected:
  const runtime::KernelTable kernels_ = cpuKernels();
  runtime::CpuDevice device_;
  const ComputeDevice on_{&device_, &kernels_};
  const std::vector<float> x_ = {0.5F, -1, 2, 0.25F}, w_ = {0.1F, 0.2F, -0.3F, 0.4F};
  const std::vector<int32_t> labels_ = {0, 1};
};

TEST_F(ModelPartTest, PullsEveryVariableAndPushesEveryGradient) {
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  const engine::TaskPart part = trainingPart(model, placeModel(model.graph, {}, 2, 3), 3, on_);
  EXPECT_EQ(part.task, (TaskId{JobKind::kWorker, 3}));
  std::map<std::string, int> ops;
  for (const graph::Node& node : part.graph.nodes()) ++ops[node.op];
  EXPECT_EQ(ops["_Pull"], 2);
  EXPECT_EQ(ops["_Push"], 2);
  EXPECT_EQ(ops["Variable"], 0);
  EXPECT_EQ(ops["Accuracy"], 0) << "which training doesn't fetch";
  EXPECT_EQ(part.fetches.size(), 1u);
}

TEST_F(ModelPartTest, AVariableOverAllPsIsPulledOnce) {
  const model::ModelGraph model = model::buildTrainingGraph(model::softmaxModel(), 10);
  cluster::PlacementSpec placement;
  placement.partition_min_bytes = 1024;
  const engine::TaskPart part =
      trainingPart(model, placeModel(model.graph, placement, 2, 0), 0, on_);
  int pulls = 0;
  for (const graph::Node& node : part.graph.nodes())
    pulls += node.op == "_Pull" && node.attribute<std::string>("variable") == "softmax/weights";
  EXPECT_EQ(pulls, 1);
}

TEST_F(ModelPartTest, AnOpOnAThirdTaskIsRefusedByName) {
  model::ModelGraph model{.graph = graph::Graph(graph::standardOps())};
  graph::Builder b(model.graph);
  model.features = b.placeholder("x", DType::kFloat32, {2, 2});
  model.labels = b.placeholder("labels", DType::kInt32, {2});
  {
    const auto elsewhere = b.deviceScope("/job:worker/task:1");
    model.logits = b.relu(model.features);
  }
  model.loss = b.mean(model.logits);
  try {
    trainingPart(model, placeModel(model.graph, {}, 1, 0), 0, on_);
    FAIL() << "nobody would run it";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("node 'Relu' (Relu)"));
  }
}

// Constants are computed while the step is compiled. A step runs equal nodes once, and unused nodes
// never.
TEST_F(ModelPartTest, AStepRunsNothingTwiceAndNothingForNobody) {
  const model::ModelGraph model = redundantModel();
  RunCounts runs;
  const runtime::KernelTable counted = countedKernels(kernels_, runs);
  const ComputeDevice on{&device_, &counted};
  const engine::TaskPart part = trainingPart(model, placeModel(model.graph, {}, 1, 0), 0, on);
  EXPECT_EQ(runs["Concat"], 1);
  EXPECT_EQ(runs["Tanh"], 1);
  EXPECT_EQ(part.folded.size(), 2u) << "the rows, and the gradient of the sum: they differ";
  ModelStep step(model, part, on);
  std::vector<float> gradient(4);
  step.bindValue(0, w_.data());
  step.bindGradient(0, gradient.data());
  step.bindExamples(std::array{reinterpret_cast<const std::byte*>(x_.data()),
                               reinterpret_cast<const std::byte*>(labels_.data())});
  for (auto& [name, count] : runs) count = 0;  // kernels refer to these counts
  step.run();
  const runtime::testing::CountAllocations allocations;
  for (int i = 0; i < 2; ++i) step.run();
  EXPECT_EQ(allocations.count(), 0);
  EXPECT_EQ(runs["MatMul"], 3);
  EXPECT_EQ(runs["Sigmoid"], 3);
  for (const char* never : {"MatMul_1", "Sigmoid_1", "Concat", "Tanh", "Relu"})
    EXPECT_EQ(runs[never], 0) << never;
}

// Against the whole graph, compiled without a master.
TEST_F(ModelPartTest, GivesTheBitsOfTheWholeGraph) {
  const model::ModelGraph model = redundantModel();
  const auto whole = runtime::compile(model.graph, std::array{model.loss}, device_, kernels_);
  std::vector<float> expected(4), gradient(4);
  whole->bindParameter(whole->parameter("w"), w_.data());
  whole->bindGradient(whole->gradient("w"), expected.data());
  whole->bindInput(whole->input("x"), reinterpret_cast<const std::byte*>(x_.data()));
  whole->run();
  std::optional<ModelStep> step;
  {
    const engine::TaskPart part = trainingPart(model, placeModel(model.graph, {}, 1, 0), 0, on_);
    step.emplace(model, part, on_);
  }
  step->bindValue(0, w_.data());
  step->bindGradient(0, gradient.data());
  step->bindExamples(std::array{reinterpret_cast<const std::byte*>(x_.data()),
                                reinterpret_cast<const std::byte*>(labels_.data())});
  step->run();
  EXPECT_EQ(step->loss(), whole->fetch(0)[0]);
  EXPECT_EQ(gradient, expected);
}

// The part has only nodes that the fetch needs, with its own variables.
TEST_F(ModelPartTest, ALocalPartHoldsItsVariables) {
  const model::ModelGraph model = model::buildEvaluationGraph(model::softmaxModel(), 10);
  const engine::TaskPart part = localPart(model, std::array{model.logits}, on_);
  std::map<std::string, int> ops;
  for (const graph::Node& node : part.graph.nodes()) ++ops[node.op];
  EXPECT_EQ(ops["Variable"], 2);
  EXPECT_EQ(ops["Mean"], 0);
  EXPECT_EQ(part.feeds.size(), 1u) << "no labels";
}

}  // namespace
}  // namespace dtf::train
