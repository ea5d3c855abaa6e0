#include "common/runtime/compiled_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/function.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/graph/random_graph.h"
#include "tests/unit/runtime/count_allocations.h"
#include "tests/unit/runtime/models.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using graph::testing::evaluate;
using testing::Classifier;
using testing::ClassifierOptions;
using testing::expectNear;
using testing::Feeds;
using ::testing::HasSubstr;
using testing::makeClassifier;
using testing::StepRunner;
using testing::Values;

// A device that, for a compiled step, has no access to the host's memory.
class StagedDevice final : public Device {
 public:
  DeviceType type() const override { return cpu_.type(); }
  std::string_view name() const override { return "staged:0"; }
  bool usesHostMemory() const override { return false; }
  void copyToDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    cpu_.copyToDevice(to, from, bytes);
  }
  void copyToHost(std::byte* to, const std::byte* from, size_t bytes) override {
    cpu_.copyToHost(to, from, bytes);
  }
  void run(std::span<const Launch> launches) override { cpu_.run(launches); }
  void synchronise() override {}

 private:
  std::byte* allocateBytes(size_t bytes) override { return cpu_.allocate(bytes).release(); }
  void freeBytes(std::byte* memory) noexcept override { std::free(memory); }
  CpuDevice cpu_;
};

class CompiledStepTest : public ::testing::Test {
 protected:
  CompiledStepTest() { registerCpuKernels(kernels_); }

  // Compares loss, accuracy and every gradient with the reference.
  void expectRightStep(Device& device, const Classifier& model, CompileOptions options,
                       double tolerance) {
    const std::vector<Output> fetches = {model.loss, model.accuracy};
    StepRunner runner(device, kernels_, model.graph, model.feeds, fetches, options);
    runner.run();
    expectNear(runner.fetch(0), evaluate(model.graph, model.feeds, model.loss), tolerance);
    expectNear(runner.fetch(1), evaluate(model.graph, model.feeds, model.accuracy), tolerance);
    for (size_t i = 0; i < model.gradients.size(); ++i) {
      SCOPED_TRACE(model.variables[i]);
      expectNear(runner.gradient(model.variables[i]),
                 evaluate(model.graph, model.feeds, model.gradients[i]), tolerance);
    }
  }

  CpuDevice device_;
  KernelTable kernels_;
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
};

TEST_F(CompiledStepTest, ComputesRandomGraphsAsTheReferenceDoes) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto made = graph::testing::makeRandomGraph(random, 40);
    // Fetches a few nodes at random places: the others are free to share memory.
    std::vector<Output> fetches;
    for (int i = 0; i < 4; ++i) fetches.push_back(made.tensors[random.below(made.tensors.size())]);
    std::erase_if(fetches, [&](Output o) { return made.graph.spec(o).dtype != DType::kFloat32; });
    StepRunner runner(device_, kernels_, made.graph, made.feeds, fetches);
    runner.run();
    runner.run();
    for (size_t i = 0; i < fetches.size(); ++i) {
      expectNear(runner.fetch(static_cast<int>(i)), evaluate(made.graph, made.feeds, fetches[i]),
                 1e-4);
    }
  }
}

TEST_F(CompiledStepTest, ComputesSoftmaxRegressionFusedOrNot) {
  Random random(1);
  const Classifier model = makeClassifier(random, {.batch = 17, .inputs = 100});
  expectRightStep(device_, model, {.fuse = true}, 1e-5);
  expectRightStep(device_, model, {.fuse = false}, 1e-5);
}

TEST_F(CompiledStepTest, ComputesAMultilayerPerceptronFusedOrNot) {
  Random random(2);
  const Classifier model = makeClassifier(random, {.batch = 20, .hidden = {300, 100}});
  expectRightStep(device_, model, {.fuse = true}, 1e-5);
  expectRightStep(device_, model, {.fuse = false}, 1e-5);
}

TEST_F(CompiledStepTest, StagesWhatIsBoundOnADeviceWithItsOwnMemory) {
  Random random(3);
  StagedDevice device;
  expectRightStep(device, makeClassifier(random, {.batch = 5, .inputs = 30, .hidden = {7}}), {},
                  1e-5);
}

// On every instruction set of this machine, with one thread and with three, with the last layer
// fused or not.
TEST_F(CompiledStepTest, AllocatesNothingWhileItRuns) {
  Random random(4);
  const Classifier softmax = makeClassifier(random, {.batch = 30});
  const Classifier perceptron = makeClassifier(random, {.batch = 30, .hidden = {64}});
  // Objects that a process makes once, such as the recorder of timelines, don't count.
  StepRunner(device_, kernels_, softmax.graph, softmax.feeds, {}).run();
  ComputePool three(3);
  testing::awaitThreads(three);
  std::vector<Processor> cpus;
  for (const Isa isa : supportedIsas()) {
    cpus.emplace_back(isa);
    cpus.emplace_back(isa, &three).part_work = 1;
  }
  for (const Processor& cpu : cpus) {
    KernelTable kernels;
    registerCpuKernels(kernels, cpu);
    for (const Classifier* model : {&softmax, &perceptron}) {
      for (const bool fuse : {true, false}) {
        const std::vector<Output> fetches = {model->loss, model->accuracy};
        StepRunner runner(device_, kernels, model->graph, model->feeds, fetches, {.fuse = fuse});
        const testing::CountAllocations allocations;
        runner.run();
        EXPECT_EQ(allocations.count(), 0) << isaName(cpu.isa) << ", " << cpu.threads() << "\n"
                                          << runner.step().plan().str();
      }
    }
  }
}

TEST_F(CompiledStepTest, FunctionsNeedADeviceThatUsesTheHostsMemory) {
  const auto same = graph::Function::build(
      graph::standardOps(), {},
      [](graph::Builder& b, std::span<const Output>) { return std::vector{b.constant({}, 1)}; });
  const Output y = b_.cond(b_.constant({}, 1), {}, same, same)[0];
  StagedDevice device;
  EXPECT_THROW(compile(graph_, std::vector{y}, device, kernels_), Error);
}

TEST_F(CompiledStepTest, GivesTheSameBitsEveryTime) {
  Random random(5);
  const Classifier model = makeClassifier(random, {.batch = 33, .hidden = {50}});
  const std::vector<Output> fetches = {model.loss};
  StepRunner one(device_, kernels_, model.graph, model.feeds, fetches);
  StepRunner other(device_, kernels_, model.graph, model.feeds, fetches);
  one.run();
  for (int repeat = 0; repeat < 3; ++repeat) {
    other.run();
    EXPECT_EQ(one.fetch(0), other.fetch(0));
    for (const std::string& name : model.variables) {
      EXPECT_EQ(one.gradient(name), other.gradient(name)) << name;
    }
  }
}

TEST_F(CompiledStepTest, RunsAnUnpartitionedGraphWithItsVariables) {
  const Output w = b_.variable("w", {2});
  b_.applyGradient(w, b_.scale(w, 3));
  const Feeds feeds = {{w, {1, 2}}};
  StepRunner runner(device_, kernels_, graph_, feeds, std::vector{w});
  runner.run();
  EXPECT_EQ(runner.gradient("w"), (Values{3, 6}));
  EXPECT_EQ(runner.fetch(0), (Values{1, 2}));
}

TEST_F(CompiledStepTest, FetchesConstants) {
  const auto step = compile(graph_, std::vector{b_.constant({3}, 1.5)}, device_, kernels_);
  step->run();
  EXPECT_THAT(step->fetch(0), ::testing::ElementsAre(1.5f, 1.5f, 1.5f));
}

TEST_F(CompiledStepTest, FetchesTheBytesOfAnyType) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1, 2, 2, 1});
  const Output labels = b_.placeholder("labels", DType::kInt64, {2});
  const graph::Window window = {.height = {.size = 2}, .width = {.size = 2}};
  const std::vector<Output> fetches = {b_.maxPool(x, window).argmax, labels};
  StagedDevice staged;
  for (Device* const device : std::initializer_list<Device*>{&device_, &staged}) {
    StepRunner runner(*device, kernels_, graph_, {{x, {1, 2, 9, 3}}, {labels, {5, 7}}}, fetches);
    runner.run();
    EXPECT_THAT(runner.step().fetchBytes(0), ::testing::ElementsAre(std::byte{2}));
    const std::span<const std::byte> bytes = runner.step().fetchBytes(1);
    ASSERT_EQ(bytes.size(), 16u);
    EXPECT_EQ(bytes[8], std::byte{7});
  }
}

template <class F>
std::string errorText(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST_F(CompiledStepTest, RefusesToRunUnbound) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const auto step = compile(graph_, std::vector{b_.relu(x)}, device_, kernels_);
  EXPECT_THAT(errorText([&] { step->run(); }), HasSubstr("input 'x' was bound"));
}

TEST_F(CompiledStepTest, NamesTheNearestToAnUnknownName) {
  const Output x = b_.placeholder("images", DType::kFloat32, {1});
  const auto step = compile(graph_, std::vector{b_.relu(x)}, device_, kernels_);
  EXPECT_THAT(errorText([&] { step->input("imagse"); }), HasSubstr("did you mean 'images'"));
}

}  // namespace
}  // namespace dtf::runtime
