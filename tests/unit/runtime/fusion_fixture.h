#pragma once

// The operations of a graph after fusion.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/fusion.h"
#include "tests/unit/runtime/models.h"

namespace dtf::runtime {

class FusionTest : public ::testing::Test {
 protected:
  FusionTest() { registerCpuKernels(kernels_); }

  std::vector<std::string> fusedOps(const graph::Graph& graph, std::vector<graph::Output> fetches) {
    step_ = lower(graph, fetches);
    fuse(step_, kernels_, DeviceType::kCpu);
    std::vector<std::string> ops;
    for (const Operation& operation : step_.operations) ops.push_back(operation.op);
    return ops;
  }

  Random random_{1};
  KernelTable kernels_;
  LoweredStep step_;
};

}  // namespace dtf::runtime
