// The result of compiling a step: its kernels, their memory, and the places of its gradients.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/runtime/models.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using graph::testing::evaluate;
using testing::Classifier;
using testing::expectNear;
using testing::Feeds;
using ::testing::HasSubstr;
using testing::makeClassifier;
using testing::StepRunner;
using testing::Values;

class StepCompiler : public ::testing::Test {
 protected:
  StepCompiler() { registerCpuKernels(kernels_); }

  CpuDevice device_;
  KernelTable kernels_;
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
};

TEST_F(StepCompiler, SharesMemoryAndNeedsNoneForReshapes) {
  Output x = b_.placeholder("x", DType::kFloat32, {100, 10});
  for (int i = 0; i < 20; ++i) x = b_.relu(b_.reshape(x, {10, 100}));
  const auto step = compile(graph_, std::vector{x}, device_, kernels_);
  EXPECT_EQ(step->plan().planned_bytes, 4032u) << "of 20 tensors of 4000 bytes";
  EXPECT_THAT(step->plan().str(), Not(HasSubstr("Reshape")));
}

TEST_F(StepCompiler, DescribesItsKernelsInOrder) {
  Random random(6);
  const Classifier model = makeClassifier(random, {.batch = 4, .inputs = 6, .hidden = {5}});
  const auto step = compile(model.graph, std::vector{model.loss}, device_, kernels_);
  EXPECT_THAT(step->plan().str(), HasSubstr("MatMul"));
  EXPECT_THAT(step->plan().str(), HasSubstr("_FusedSoftmax"));
  EXPECT_LT(step->plan().str().find("Relu "), step->plan().str().find("_FusedSoftmax"));
}

TEST_F(StepCompiler, WritesGradientsToWhereTheyAreBoundLast) {
  Random random(7);
  const Classifier model = makeClassifier(random, {.batch = 4, .inputs = 6});
  StepRunner runner(device_, kernels_, model.graph, model.feeds, {});
  std::vector<float> elsewhere(60, -1.0f);
  runner.step().bindGradient(runner.step().gradient("w0"), elsewhere.data());
  runner.run();
  expectNear(Values(elsewhere.begin(), elsewhere.end()),
             evaluate(model.graph, model.feeds, model.gradients[0]), 1e-5);
  EXPECT_THAT(runner.step().plan().str(), Not(HasSubstr("Identity")));
}

TEST_F(StepCompiler, CopiesAGradientThatNoKernelCanWriteInPlace) {
  const Output x = b_.placeholder("x", DType::kFloat32, {3});
  const Output twice = b_.scale(x, 2);
  b_.node("_Push", {x}, {{"variable", "a"}});
  b_.node("_Push", {b_.constant({2}, 4)}, {{"variable", "b"}});
  b_.node("_Push", {twice}, {{"variable", "c"}});
  b_.node("_Push", {b_.reshape(twice, {3, 1})}, {{"variable", "d"}});
  const Feeds feeds = {{x, {1, 2, 3}}};
  StepRunner runner(device_, kernels_, graph_, feeds, std::vector{twice});
  runner.run();
  EXPECT_EQ(runner.gradient("a"), (Values{1, 2, 3}));
  EXPECT_EQ(runner.gradient("b"), (Values{4, 4}));
  EXPECT_EQ(runner.gradient("c"), (Values{2, 4, 6}));
  EXPECT_EQ(runner.gradient("d"), (Values{2, 4, 6}));
  EXPECT_EQ(runner.fetch(0), (Values{2, 4, 6}));
}

TEST_F(StepCompiler, RunsNothingThatNobodyFetches) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.tanh(b_.sigmoid(x));
  const auto step = compile(graph_, std::vector{b_.relu(x)}, device_, kernels_);
  EXPECT_THAT(step->plan().str(),
              AllOf(HasSubstr("Relu"), Not(HasSubstr("Sigmoid")), Not(HasSubstr("Tanh"))));
}

TEST_F(StepCompiler, IsPlannedAsItIsCompiledAndSaysTheWaysOfItsKernels) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1, 14, 14, 32});
  const Output filter = b_.variable("filter", {5, 5, 32, 16});
  const graph::Window window = graph::paddedSame({{.size = 5}, {.size = 5}}, 14, 14);
  const Output y = b_.relu(b_.conv2D(x, filter, window));
  const StepPlan planned = planStep(graph_, std::vector{y}, device_.type(), kernels_);
  const auto step = compile(graph_, std::vector{y}, device_, kernels_);
  const StepPlan& compiled = step->plan();
  EXPECT_EQ(planned.str(), compiled.str());
  EXPECT_EQ(planned.planned_bytes, compiled.planned_bytes);
  ASSERT_EQ(planned.kernels.size(), 2U);
  EXPECT_EQ(planned.kernels[0].way, "winograd");
  EXPECT_EQ(planned.kernels[1].way, "");
}

TEST_F(StepCompiler, NeedsOnlyThePlaceholdersThatAreRead) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  b_.placeholder("unused", DType::kFloat32, {1});
  const Feeds feeds = {{x, {2}}};
  StepRunner runner(device_, kernels_, graph_, feeds, std::vector{b_.relu(x)});
  runner.run();
  EXPECT_GE(runner.step().input("unused"), 0);
}

}  // namespace
}  // namespace dtf::runtime
