// Functions that kernels call. The device suite checks their results
// (tests/conformance/device_suite_control.cc).

#include "common/runtime/called_function.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/runtime/count_allocations.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime {
namespace {

using graph::Builder;
using graph::Output;
using testing::StepRunner;

class CalledFunctionTest : public ::testing::Test {
 protected:
  CalledFunctionTest() { registerCpuKernels(kernels_); }

  CpuDevice device_;
  KernelTable kernels_;
  graph::Graph graph_{graph::standardOps()};
  Builder b_{graph_};
};

TEST_F(CalledFunctionTest, ComputesItsResultsOfWhatIsBound) {
  const graph::TensorSpec spec{DType::kFloat32, {3}};
  CalledFunction sum(graph::Function::build(graph::standardOps(), std::array{spec, spec},
                                            [](Builder& b, std::span<const Output> p) {
                                              return std::vector{b.add(p[0], p[1]), p[1]};
                                            }),
                     DeviceType::kCpu, kernels_);
  sum.prepare(device_);
  const float x[] = {1, 2, 3}, y[] = {10, 20, 30};
  sum.bind(0, reinterpret_cast<const std::byte*>(x));
  sum.bind(1, reinterpret_cast<const std::byte*>(y));
  sum.call();
  const auto* const made = reinterpret_cast<const float*>(sum.result(0).data());
  EXPECT_EQ(std::vector<float>(made, made + 3), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(static_cast<const void*>(sum.result(1).data()), y);
}

TEST_F(CalledFunctionTest, KeepsNothingOfTheGraphOnceItIsCompiled) {
  auto function = graph::Function::build(
      graph::standardOps(), {},
      [](Builder& b, std::span<const Output>) { return std::vector{b.tanh(b.constant({}, 1))}; });
  const std::weak_ptr<const graph::Function> kept = function;
  CalledFunction called(std::move(function), DeviceType::kCpu, kernels_);
  EXPECT_FALSE(kept.expired());
  called.prepare(device_);
  EXPECT_TRUE(kept.expired());
}

TEST_F(CalledFunctionTest, NeedsAKernelForEachOfItsOps) {
  const auto function = graph::Function::build(
      graph::standardOps(), {},
      [](Builder& b, std::span<const Output>) { return std::vector{b.tanh(b.constant({}, 1))}; });
  const KernelTable none;
  EXPECT_THROW(CalledFunction(function, DeviceType::kCpu, none), Error);
}

TEST_F(CalledFunctionTest, CallsFunctionsWithoutAnAllocation) {
  const graph::TensorSpec spec{DType::kFloat32, {20, 30}};
  const auto scaled = [&](double factor) {
    return graph::Function::build(graph::standardOps(), std::array{spec},
                                  [&](Builder& b, std::span<const Output> p) {
                                    return std::vector{b.scale(b.tanh(p[0]), factor)};
                                  });
  };
  const auto body = graph::Function::build(
      graph::standardOps(), std::array{spec}, [&](Builder& b, std::span<const Output> p) {
        return b.cond(b.less(b.mean(p[0]), b.constant({}, 0)), {p[0]}, scaled(2), scaled(3));
      });
  const Output x = b_.constant({20, 30}, 1);
  const auto loop = b_.whileLoop({.carried = {x},
                                  .sequences = {},
                                  .captured = {},
                                  .body = body,
                                  .cond = nullptr,
                                  .max_iterations = 5,
                                  .keep_carried = true});
  const Output loss = b_.mean(loop.carried[0]);
  const std::vector fetches = {loss, addGradients(graph_, loss, std::array{x})[0]};
  StepRunner runner(device_, kernels_, graph_, {}, fetches);
  const testing::CountAllocations allocations;
  runner.run();
  EXPECT_EQ(allocations.count(), 0);
}

TEST_F(CalledFunctionTest, PlansTheMemoryOfFunctions) {
  const auto large =
      graph::Function::build(graph::standardOps(), {}, [](Builder& b, std::span<const Output>) {
        const Output ones = b.constant({1 << 20}, 1);
        return std::vector{b.mean(b.mul(b.tanh(ones), b.sigmoid(ones)))};
      });
  const auto planned = [this](const graph::Function& function) {
    return planStep(function.graph(), function.results(), device_.type(), kernels_).planned_bytes;
  };
  const size_t each = planned(*large);
  EXPECT_GE(each, size_t{2} * (4 << 20)) << "two tensors that are there at once";
  const auto calls = [&](const graph::Function::Build& build) {
    return planned(*graph::Function::build(graph::standardOps(), {}, build));
  };
  EXPECT_GE(calls([&](Builder& b, std::span<const Output>) {
              return b.cond(b.constant({}, 1), {}, large, large);
            }),
            2 * each)
      << "both branches";
  const auto loop = [&](const graph::FunctionRef& body, const graph::FunctionRef& cond) {
    return calls([&](Builder& b, std::span<const Output>) {
      return b
          .whileLoop({.carried = {},
                      .sequences = {},
                      .captured = {},
                      .body = body,
                      .cond = cond,
                      .max_iterations = 3,
                      .stacked = 1})
          .stacked;
    });
  };
  EXPECT_GE(loop(large, nullptr), each) << "the body";
  EXPECT_GE(loop(large, large), 2 * each) << "the body and the cond";
}

}  // namespace
}  // namespace dtf::runtime
