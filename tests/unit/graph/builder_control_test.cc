// The outputs of branches and loops.

#include <gtest/gtest.h>

#include "tests/unit/graph/control_functions.h"

namespace dtf::graph {
namespace {

using testing::floatSpec;
using testing::functionOf;
using Outputs = std::vector<Output>;
using Parameters = std::span<const Output>;

class BuilderControl : public ::testing::Test {
 protected:
  Output floats(Shape shape) {
    return b_.placeholder(graph_.uniqueName("x"), DType::kFloat32, std::move(shape));
  }
  // Carries x [2] over the slices of s [4, 2].
  Builder::WhileArguments loop() {
    return {.carried = {x_},
            .sequences = {s_},
            .captured = {},
            .body = functionOf(2, {2},
                               [](Builder& b, Parameters p) {
                                 return Outputs{b.add(p[0], p[1]), p[1]};
                               }),
            .cond = nullptr,
            .max_iterations = 4,
            .stacked = 1};
  }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  const Output x_ = floats({2}), s_ = floats({4, 2});
  const FunctionRef same_ =
      functionOf(1, {2}, [](Builder&, Parameters p) { return Outputs{p[0]}; });
};

TEST_F(BuilderControl, AnIfGivesWhatItsBranchesGive) {
  const auto results = b_.cond(floats({}), {x_}, same_, same_);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(graph_.spec(results[0]), floatSpec({2}));
}

TEST_F(BuilderControl, AWhileStacksAndSums) {
  auto summed = loop();
  summed.keep_carried = true;
  summed.stacked = 0;
  summed.summed = 1;
  const auto stacks = b_.whileLoop(loop()), sums = b_.whileLoop(summed);
  EXPECT_EQ(graph_.spec(stacks.carried[0]), floatSpec({2}));
  EXPECT_EQ(graph_.spec(stacks.iterations), (TensorSpec{DType::kInt64, Shape()}));
  EXPECT_EQ(graph_.spec(stacks.stacked[0]), floatSpec({4, 2}));
  EXPECT_EQ(graph_.spec(sums.summed[0]), floatSpec({2}));
  const Node& node = graph_.node(sums.iterations.node);
  EXPECT_EQ(node.outputs.back(), floatSpec({4, 2}));  // the states that it keeps
}

}  // namespace
}  // namespace dtf::graph
