#include "common/serving/counted_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/compiled_step.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::serving {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A convolution has a workspace, which is no tensor of the graph.
TEST(CountedDevice, WhatAProgramTakesIsCountedUntilItsEnd) {
  runtime::CpuDevice cpu;
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels);
  graph::Graph graph{graph::standardOps()};
  graph::Builder b(graph);
  const auto x = b.placeholder("x", DType::kFloat32, {1, 9, 9, 3});
  const auto filter = b.placeholder("filter", DType::kFloat32, {4, 4, 3, 5});
  const auto y = b.conv2D(x, filter);
  const auto budget = ByteBudget::create(1 << 30, "worker/1");
  CountedDevice counted(cpu, budget);
  const auto step = [&] { return runtime::compile(graph, std::vector{y}, counted, kernels); };
  uint64_t needed = 0;
  {
    const auto compiled = step();
    needed = budget->taken();
    EXPECT_EQ(needed, compiled->plan().planned_bytes);
    EXPECT_GT(needed, 6 * 6 * 5 * sizeof(float));
  }
  EXPECT_EQ(budget->taken(), 0u);
  const auto others = budget->take((1 << 30) - needed + 1, "others");
  EXPECT_THAT(errorText(step), AllOf(HasSubstr("worker/1 has no room"), HasSubstr("workspaces")));
  EXPECT_EQ(budget->taken(), others.bytes()) << "what was refused holds nothing";
}

}  // namespace
}  // namespace dtf::serving
