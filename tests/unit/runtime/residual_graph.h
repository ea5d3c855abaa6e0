#pragma once

// A small graph with a normalisation, and a table of kernels that never run: for tests of the
// passes that change a step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/fusion.h"
#include "common/runtime/inlined_functions.h"
#include "common/runtime/mixed_precision.h"

namespace dtf::runtime::testing {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

inline std::vector<std::string> opNames(const LoweredStep& step) {
  std::vector<std::string> names;
  for (const Operation& operation : step.operations) names.push_back(operation.op);
  return names;
}

// The kernels of a GPU that the passes look for.
inline KernelTable gpuTable() {
  KernelTable table;
  for (const std::string_view op :
       {kFusedBatchNormReluOp, kFusedBatchNormReluGradOp, kCastPrecisionOp})
    table.add(std::string(op), DeviceType::kGpu,
              [](const Operation&) -> std::unique_ptr<Kernel> { return nullptr; });
  return table;
}

struct ResidualGraph {
  graph::Output norm(graph::Output from) { return made(from).y; }
  graph::Output mean(graph::Output from) { return made(from).mean; }
  graph::Builder::BatchNorm made(graph::Output from) {
    return b.batchNorm(from, scale, offset, 1e-3);
  }
  // Returns the gradients of the mean of `y` with respect to x, scale, offset and `more`.
  std::vector<graph::Output> gradientsOf(graph::Output y, std::vector<graph::Output> more = {}) {
    more.insert(more.begin(), {x, scale, offset});
    return graph::addGradients(graph, b.mean(y), more);
  }

  graph::Graph graph{graph::standardOps()};
  graph::Builder b{graph};
  graph::Output x = b.placeholder("x", DType::kFloat32, {5, 8});
  graph::Output other = b.placeholder("other", DType::kFloat32, {5, 8});
  graph::Output scale = b.placeholder("scale", DType::kFloat32, {8});
  graph::Output offset = b.placeholder("offset", DType::kFloat32, {8});
};

}  // namespace dtf::runtime::testing
