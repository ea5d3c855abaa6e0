#pragma once

// Single nodes of a graph, computed by the CPU's kernels. The device suite (tests/conformance)
// tests all results against a reference in double precision.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/runtime/step_runner.h"

namespace dtf::runtime::testing {

class KernelTest : public ::testing::Test {
 protected:
  KernelTest() { registerCpuKernels(kernels_); }

  graph::Output fed(Shape shape, Values values, DType dtype = DType::kFloat32) {
    const graph::Output input = b_.placeholder(graph_.uniqueName("fed"), dtype, std::move(shape));
    feeds_[input] = std::move(values);
    return input;
  }
  Values computed(graph::Output output, CompileOptions options = {}) {
    StepRunner runner(device_, kernels_, graph_, feeds_, std::array{output}, options);
    runner.run();
    return runner.fetch(0);
  }
  // Returns the error about the data that were fed.
  std::string refusal(graph::Output output) {
    StepRunner runner(device_, kernels_, graph_, feeds_, std::array{output});
    try {
      runner.run();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return "";
  }
  // Returns the kernel of a node, without a step.
  std::unique_ptr<Kernel> kernelOf(graph::Output output) const {
    const graph::Node& node = graph_.node(output.node);
    Operation operation;
    operation.name = node.name;
    operation.op = node.op;
    operation.attributes = node.attributes;
    for (const graph::Output& input : node.inputs)
      operation.input_specs.push_back(graph_.spec(input));
    operation.output_specs = node.outputs;
    return kernels_.make(operation, DeviceType::kCpu);
  }

  CpuDevice device_;
  KernelTable kernels_;
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  Feeds feeds_;
};

}  // namespace dtf::runtime::testing
