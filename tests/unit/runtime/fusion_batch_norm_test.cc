// Which operations are fused, and which must not be. The device suite tests the results.

#include "tests/unit/runtime/residual_graph.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;

class FusionBatchNormTest : public ::testing::Test {
 protected:
  std::vector<std::string> opsOf(ResidualGraph& of, std::vector<Output> fetches) {
    step_ = lower(of.graph, fetches);
    fuse(step_, gpuTable(), DeviceType::kGpu);
    return opNames(step_);
  }
  const Operation& only(std::string_view op) const {
    const auto at = std::ranges::find(step_.operations, op, &Operation::op);
    EXPECT_NE(at, step_.operations.end());
    return *at;
  }
  LoweredStep step_;
};

TEST_F(FusionBatchNormTest, JoinsANormalisationWithItsRelu) {
  ResidualGraph g;
  const Output y = g.b.relu(g.norm(g.x));
  EXPECT_THAT(opsOf(g, {y}), ElementsAre(kFusedBatchNormReluOp));
  EXPECT_EQ(step_.operations[0].inputs.size(), 3u);
  EXPECT_EQ(step_.operations[0].outputs[0], step_.fetches[0].tensor);
}

TEST_F(FusionBatchNormTest, TakesWhatIsAddedFromEitherSide) {
  for (const bool first : {false, true}) {
    ResidualGraph g;
    const Output normed = g.norm(g.x);
    const Output y = g.b.relu(first ? g.b.add(normed, g.other) : g.b.add(g.other, normed));
    EXPECT_THAT(opsOf(g, {y}), ElementsAre(kFusedBatchNormReluOp));
    EXPECT_EQ(step_.operations[0].inputs.back(), g.other);
  }
}

TEST_F(FusionBatchNormTest, LeavesWhatSomebodyElseReads) {
  ResidualGraph g;
  const Output normed = g.norm(g.x);
  EXPECT_THAT(opsOf(g, {g.b.relu(normed), normed}), Not(Contains(kFusedBatchNormReluOp)));
  ResidualGraph h;
  const Output sum = h.b.add(h.norm(h.x), h.other);
  EXPECT_THAT(opsOf(h, {h.b.relu(sum), h.b.tanh(sum)}), Not(Contains(kFusedBatchNormReluOp)));
}

TEST_F(FusionBatchNormTest, DoesNotTakeAStatisticForTheResult) {
  ResidualGraph g;
  const Output y = g.b.relu(g.mean(g.x));
  EXPECT_THAT(opsOf(g, {y}), ElementsAre("FusedBatchNorm", "Relu"));
}

// The sum would be an input of the fused operation that computes its statistics.
TEST_F(FusionBatchNormTest, LeavesASumWithItsOwnStatistics) {
  ResidualGraph g;
  const auto norm = g.made(g.x);
  const Output again = g.b.biasAdd(g.other, norm.mean);
  EXPECT_THAT(opsOf(g, {g.b.relu(g.b.add(norm.y, again))}), Not(Contains(kFusedBatchNormReluOp)));
}

TEST_F(FusionBatchNormTest, FindsTheMaskInXWhereNothingWasAdded) {
  ResidualGraph g;
  opsOf(g, g.gradientsOf(g.b.relu(g.norm(g.x))));
  const Operation& gradient = only(kFusedBatchNormReluGradOp);
  EXPECT_TRUE(gradient.attributeOr<bool>("mask_from_x", false));
  EXPECT_EQ(gradient.inputs.size(), 6u);  // scale, mean, inverse, offset, x, dy
  EXPECT_EQ(gradient.outputs.size(), 3u);
  EXPECT_THAT(opNames(step_), Not(Contains("ReluGrad")));
}

TEST_F(FusionBatchNormTest, PassesOnWhatTheOtherBranchReads) {
  ResidualGraph g;
  opsOf(g, g.gradientsOf(g.b.relu(g.b.add(g.norm(g.x), g.b.tanh(g.other))), {g.other}));
  const Operation& gradient = only(kFusedBatchNormReluGradOp);
  EXPECT_FALSE(gradient.attributeOr<bool>("mask_from_x", true));
  EXPECT_EQ(gradient.inputs.size(), 7u);  // y, too
  ASSERT_EQ(gradient.outputs.size(), 4u);
  EXPECT_EQ(only("TanhGrad").inputs[0], gradient.outputs[3]);
}

TEST_F(FusionBatchNormTest, TakesTwoGradientsThatMeet) {
  ResidualGraph g;
  const Output y = g.b.relu(g.norm(g.x));
  opsOf(g, g.gradientsOf(g.b.mul(g.b.tanh(y), g.b.sigmoid(y))));
  EXPECT_EQ(only(kFusedBatchNormReluGradOp).inputs.size(), 7u);  // dy twice
  EXPECT_THAT(opNames(step_), Not(Contains("AddN")));
}

}  // namespace
}  // namespace dtf::runtime::testing
