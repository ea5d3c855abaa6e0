#include "common/engine/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "tests/unit/graph/control_functions.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::engine {
namespace {

using graph::Node;
using graph::NodeId;
using graph::Output;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FoldTest : public ::testing::Test {
 protected:
  FoldTest() { runtime::registerCpuKernels(kernels_); }

  Folded fold(const std::vector<Output>& fetches, const std::vector<NodeId>& targets = {}) {
    return foldConstants(graph_, fetches, targets, device_, kernels_);
  }
  static std::vector<std::string> opsOf(const Folded& folded) {
    std::vector<std::string> ops;
    for (const Node& node : folded.graph.nodes()) ops.push_back(node.op);
    return ops;
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  runtime::CpuDevice device_;
  runtime::KernelTable kernels_;
};

TEST_F(FoldTest, WhatIsAlikeEverywhereBecomesOneConstant) {
  const Output y = b_.add(b_.scale(b_.constant({2, 3}, 2), 5), b_.constant({2, 3}, 1));
  const Folded folded = fold({y});
  ASSERT_THAT(opsOf(folded), ElementsAre("Const"));
  const Node& node = folded.graph.node(folded.fetches[0].node);
  EXPECT_EQ(node.name, graph_.node(y.node).name);
  EXPECT_EQ(node.outputs[0].shape, Shape({2, 3}));
  EXPECT_EQ(node.attribute<double>("value"), 11);
  EXPECT_THAT(folded.values, IsEmpty());
}

TEST_F(FoldTest, WhatIsNotAlikeBecomesAValueThatIsAlwaysFed) {
  const Output y = b_.concat({b_.constant({1}, 2), b_.constant({2}, 3)}, 0);
  const Folded folded = fold({y});
  ASSERT_THAT(opsOf(folded), ElementsAre("Placeholder"));
  const Tensor& value = folded.values.at(graph_.node(y.node).name);
  EXPECT_THAT(value.as<float>(), ElementsAre(2, 3, 3));
}

TEST_F(FoldTest, EachOutputOfANodeIsFoldedByItself) {
  const Output logits = b_.concat({b_.constant({1, 1}, 1), b_.constant({1, 1}, 1)}, 1);
  const auto entropy = b_.sparseSoftmaxCrossEntropy(logits, b_.constant({1}, 1, DType::kUInt8));
  const Folded folded = fold({entropy.backprop, entropy.loss});
  EXPECT_THAT(opsOf(folded), ElementsAre("Const", "Placeholder"));
  EXPECT_EQ(folded.graph.node(folded.fetches[0].node).op, "Placeholder");
  EXPECT_THAT(folded.values.begin()->second.as<float>(), ElementsAre(0.5f, -0.5f));
  EXPECT_FLOAT_EQ(
      static_cast<float>(folded.graph.node(folded.fetches[1].node).attribute<double>("value")),
      0.693147f);
}

TEST_F(FoldTest, WhatDependsOnAFeedOrAVariableStays) {
  const Output x = b_.placeholder("x", DType::kFloat32, {1});
  const Output w = b_.variable("w", {1});
  const Output y = b_.add(b_.mul(x, b_.scale(b_.constant({1}, 2), 3)), w);
  EXPECT_THAT(opsOf(fold({y})), ElementsAre("Placeholder", "Variable", "Const", "Mul", "Add"));
}

TEST_F(FoldTest, WhatWaitsForOthersAndWhatIsStatefulStays) {
  const NodeId before = b_.node("NoOp", {}, {}, "before");
  const Output waits{b_.node("Identity", {b_.constant({1}, 2)}, {}, "waits", {before})};
  const Output y = b_.scale(waits, 2);
  EXPECT_THAT(opsOf(fold({y})), ElementsAre("NoOp", "Const", "Identity", "Scale"));
}

TEST_F(FoldTest, WhatIsLargeIsComputedEachTime) {
  const int64_t elements = static_cast<int64_t>(kFoldedBytesMax / sizeof(float)) + 1;
  const Output large = b_.relu(b_.concat({b_.constant({elements - 1}, 1), b_.constant({1}, 2)}, 0));
  EXPECT_THAT(opsOf(fold({large})), ElementsAre("Const", "Const", "Concat", "Relu"));
}

// They may take any time: folding on the client has no deadline, and can't be aborted.
TEST_F(FoldTest, BranchesAndLoopsAreForTheStepHoweverConstant) {
  const auto doubled = graph::testing::functionOf(
      1, {2},
      [](graph::Builder& b, std::span<const Output> p) { return std::vector{b.scale(p[0], 2)}; });
  const Output x = b_.constant({2}, 1);
  const Output chosen = b_.cond(b_.constant({}, 1), {x}, doubled, doubled)[0];
  const auto loop = b_.whileLoop({.carried = {x},
                                  .sequences = {},
                                  .captured = {},
                                  .body = doubled,
                                  .cond = nullptr,
                                  .max_iterations = 3});
  const Output sum = b_.add(b_.scale(chosen, 2), b_.scale(loop.carried[0], 3));
  EXPECT_THAT(opsOf(fold({sum})),
              ElementsAre("Const", "Const", "If", "While", "Scale", "Scale", "Add"));
}

TEST_F(FoldTest, ATargetThatIsConstantIsStillThere) {
  const Output y = b_.relu(b_.constant({1}, 2));
  const Folded folded = fold({}, {y.node});
  EXPECT_EQ(folded.graph.node(folded.targets[0]).name, graph_.node(y.node).name);
}

TEST_F(FoldTest, WithoutAKernelNothingIsFolded) {
  const runtime::KernelTable none;
  const Output y = b_.relu(b_.constant({1}, 2));
  const Folded folded = foldConstants(graph_, std::vector{y}, {}, device_, none);
  EXPECT_THAT(opsOf(folded), ElementsAre("Const", "Relu"));
}

TEST_F(FoldTest, NegativeZeroIsNotZero) {
  const Output y = b_.concat({b_.constant({1}, 0.0), b_.constant({1}, -0.0)}, 0);
  EXPECT_THAT(opsOf(fold({y})), ElementsAre("Placeholder"));
}

}  // namespace
}  // namespace dtf::engine
