#include "common/optimizer/minimize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/optimizer_text.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::optimizer {
namespace {

using graph::Node;
using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

// loss = sum(w * x) + sum(rows of t): w on ps/1, t a table.
class MinimizeTest : public ::testing::Test {
 protected:
  MinimizeTest() {
    Output w, t;
    {
      const auto there = b_.deviceScope("/job:ps/task:1");
      w = b_.variable("w", Shape{3}, "he_normal");
    }
    t = b_.variable("t", Shape{9, 2});
    const Output x = b_.placeholder("x", DType::kFloat32, Shape{3});
    const Output ids = b_.placeholder("ids", DType::kInt32, Shape{4});
    loss_ = b_.add(b_.sum(b_.mul(w, x)), b_.sum(b_.gather(t, ids)));
    w_ = w;
  }
  Minimized minimized(const std::string& optimizer, const MinimizeOptions& options = {}) {
    return minimize(graph_, loss_, decodeOptimizer(optimizer), options);
  }
  const Node& node(const std::string& name) const {
    const Node* const found = graph_.find(name);
    EXPECT_NE(found, nullptr) << name;
    return found == nullptr ? graph_.nodes()[0] : *found;
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  Output loss_, w_;
};

TEST_F(MinimizeTest, SlotsAreVariablesBesideTheirOwn) {
  const Minimized made = minimized("adam");
  EXPECT_EQ(node("w/Adam").device, "/job:ps/task:1");
  EXPECT_EQ(node("w/Adam_1").outputs, node("w").outputs);
  EXPECT_EQ(node("t/Adam").op, "Variable");
  EXPECT_EQ(graph_.node(made.train.node).name, "Adam");
  EXPECT_EQ(graph_.node(made.global_step.node).name, "global_step");
  EXPECT_EQ(node("global_step").device, "/job:ps/task:1") << "of the first variable";
  EXPECT_EQ(node("Adam/update_w").op, "ApplyOptimizer");
  EXPECT_EQ(node("Adam/update_t").op, "ApplySparseOptimizer");
  EXPECT_FALSE(made.norm);
}

TEST_F(MinimizeTest, SlotsStartAsThoseOfAJob) {
  minimized("adagrad initial_accumulator_value=0.25 moving_average.decay=0.9");
  EXPECT_EQ(node("w/Adagrad").attribute<std::string>("initializer"), "constant=0.25");
  const Node& average = node("w/ExponentialMovingAverage");
  EXPECT_EQ(average.attribute<std::string>("initializer"), "he_normal");
  EXPECT_EQ(average.attribute<int64_t>("stream"), 1) << "the numbers of w, the first variable";
  EXPECT_EQ(node("t/ExponentialMovingAverage").attribute<int64_t>("stream"), 2);
}

TEST_F(MinimizeTest, ClipsAllGradientsByOneNorm) {
  const Minimized made = minimized("momentum clip_by_global_norm=1");
  ASSERT_TRUE(made.norm);
  const Node& clip = node("Momentum/clip");
  EXPECT_EQ(clip.attribute<std::string>("sparse"), "1");
  EXPECT_EQ(made.norm->index, 2);
  EXPECT_EQ(node("Momentum/update_w").inputs.at(2), (Output{clip.id, 0}));
}

TEST_F(MinimizeTest, ReplicasBringTheirGradientsToTheVariables) {
  const Minimized made = minimized("adam", {.replicas = SyncReplicas{2, 3, 1}});
  EXPECT_EQ(node("w/sync_step").device, "/job:ps/task:1");
  EXPECT_EQ(node("w/sync_step").outputs[0].dtype, DType::kInt64);
  EXPECT_EQ(node("Adam/gradient_w").op, "AccumulatorApplyGradient");
  EXPECT_EQ(node("Adam/gradient_t").op, "SparseAccumulatorApplyGradient");
  const Node& arrive = node("Adam/arrive");
  EXPECT_EQ(arrive.attribute<int64_t>("rank"), 1);
  EXPECT_EQ(made.accepted, (Output{arrive.id, 1}));
  EXPECT_EQ(node("Adam/update_t").op, "ApplyAccumulated");
  EXPECT_TRUE(node("Adam/update_t").attribute<bool>("sparse"));
  EXPECT_EQ(graph_.node(made.train.node).control_inputs.size(), 2u) << "after both updates";
  EXPECT_EQ(graph_.node(*made.finish).op, "SyncReplicasFinish");
  EXPECT_THAT(errorText([&] {
                minimized("adam", {.replicas = SyncReplicas{2, 3, 3}});
              }),
              HasSubstr("rank 3 is none of the 3 replicas"));
  EXPECT_THAT(errorText([&] { minimized("gradient_descent", {.replicas = SyncReplicas{}}); }),
              HasSubstr("has synchronous replicas already"));
}

// Clients that make the same variables in another order share a step.
TEST(MinimizeReplicas, TheOrderOfTheVariablesIsNoDifference) {
  std::string texts[2];
  for (const bool is_reversed : {false, true}) {
    graph::Graph own{graph::standardOps()};
    graph::Builder b(own);
    std::vector<Output> all;
    for (const char* const name : {"a", "b"})
      all.push_back(
          b.sum(b.variable(is_reversed ? (*name == 'a' ? "b" : "a") : name, Shape{2}, "ones")));
    const Minimized made = minimize(own, b.add(all[0], all[1]), decodeOptimizer("adam"),
                                    {.replicas = SyncReplicas{1, 1, 0}});
    texts[is_reversed ? 1 : 0] = own.node(made.accepted->node).attribute<std::string>("variables");
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// Each would take the other's step for its own.
TEST_F(MinimizeTest, ReplicasShareTheirCounterWithNoOtherLoss) {
  const Output other = b_.sum(b_.variable("other", Shape{2}, "ones"));
  const auto minimizeOther = [&](const MinimizeOptions& options) {
    minimize(graph_, other, decodeOptimizer("adam"), options);
  };
  const MinimizeOptions replicas{.replicas = SyncReplicas{2, 2, 0}};
  minimized("adam", replicas);
  const auto refused = AllOf(HasSubstr("'global_step' counts the steps of another loss"),
                             HasSubstr("minimize the sum of the losses, or give each its own"));
  EXPECT_THAT(errorText([&] { minimizeOther(replicas); }), refused);
  EXPECT_THAT(errorText([&] { minimizeOther({}); }), refused);
  minimizeOther({.global_step = "other_step", .replicas = SyncReplicas{2, 2, 0}});
}

TEST_F(MinimizeTest, ReplicasRefuseACounterThatIsUsed) {
  const Output other = b_.sum(b_.variable("other", Shape{2}, "ones"));
  minimize(graph_, other, decodeOptimizer("adam"), {});
  EXPECT_THAT(errorText([&] {
                minimized("adam", {.replicas = SyncReplicas{2, 2, 0}});
              }),
              HasSubstr("synchronous replicas share it with none"));
  EXPECT_EQ(graph_.find("w/sync_step"), nullptr) << "nothing was added";
}

TEST_F(MinimizeTest, ATableIsDenseWhereItsUpdateNeedsTheWhole) {
  minimized("momentum weight_decay=0.1");
  EXPECT_EQ(node("Momentum/update_t").op, "ApplyOptimizer");
}

TEST_F(MinimizeTest, ATableThatIsReadOtherwiseIsDense) {
  loss_ = b_.add(loss_, b_.sum({node("t").id}));
  minimized("momentum");
  EXPECT_EQ(node("Momentum/update_t").op, "ApplyOptimizer");
}

// Its part of the gradient would be lost.
TEST_F(MinimizeTest, ATableThatTheLossReadsByAReadVariableIsRefused) {
  const Output t{node("t").id}, by = b_.constant(Shape{9, 2}, 1), alone = loss_;
  for (const bool assigns : {false, true}) {
    const Output read{assigns ? b_.node("AssignAdd", {t, by}) : b_.node("ReadVariable", {t})};
    loss_ = b_.add(alone, b_.sum(b_.mul(read, read)));
    EXPECT_THAT(errorText([&] { minimized("adam", {.variables = {t}}); }),
                AllOf(HasSubstr(graph_.node(read.node).name), HasSubstr("has no gradient")));
  }
}

TEST_F(MinimizeTest, ATableThatIsReadAsideOfTheLossIsUpdatedByRows) {
  b_.node("ReadVariable", {{node("t").id}}, {}, "read");
  minimized("momentum");
  EXPECT_EQ(node("Momentum/update_t").op, "ApplySparseOptimizer");
}

TEST_F(MinimizeTest, ATableThatTheLossReadsAsAConstantIsDense) {
  const Output read{b_.node("ReadVariable", {{node("t").id}}, {}, "read")};
  loss_ = b_.add(loss_, b_.sum({b_.node("StopGradient", {read})}));
  minimized("momentum");
  EXPECT_EQ(node("Momentum/update_t").op, "ApplyOptimizer");
}

TEST_F(MinimizeTest, ARefusalLeavesNoSlots) {
  b_.variable("t/Momentum", Shape{1});
  EXPECT_THAT(errorText([&] { minimized("momentum"); }), HasSubstr("'t/Momentum' already"));
  EXPECT_THAT(
      errorText([&] { minimized("momentum", {.variables = {w_}, .global_step = "w/Momentum"}); }),
      AllOf(HasSubstr("'w/Momentum' can't count steps"), HasSubstr("another name")));
  for (const char* const name : {"w/Momentum", "global_step"})
    EXPECT_EQ(graph_.find(name), nullptr) << name;
  minimized("momentum", {.variables = {w_}});
}

TEST_F(MinimizeTest, TrainsTheListedVariablesAlone) {
  minimized("momentum", {.variables = {w_}, .prefix = "critic/", .global_step = "steps"});
  EXPECT_EQ(node("critic/Momentum/update_w").op, "ApplyOptimizer");
  EXPECT_EQ(graph_.find("t/Momentum"), nullptr);
  EXPECT_EQ(node("steps").outputs[0].dtype, DType::kInt64);
}

TEST_F(MinimizeTest, ASecondLossMaySharesTheCounter) {
  const Minimized one = minimized("momentum", {.variables = {w_}});
  const Minimized two = minimized("momentum", {.variables = {{node("t").id}}});
  EXPECT_EQ(one.global_step, two.global_step);
  EXPECT_NE(one.train, two.train);
}

TEST_F(MinimizeTest, MistakesAreNamed) {
  const Output x{node("x").id};
  EXPECT_THAT(errorText([&] { minimized("momentum", {.variables = {x}}); }),
              AllOf(HasSubstr("'x' (Placeholder)"), HasSubstr("no float32 Variable")));
  EXPECT_THAT(errorText([&] {
                minimized("momentum", {.variables = {w_, w_}});
              }),
              HasSubstr("'w' is listed twice"));
  EXPECT_THAT(errorText([&] { minimized("momentum", {.variables = {w_}, .global_step = "x"}); }),
              HasSubstr("'x' (Placeholder) can't count steps"));
  EXPECT_THAT(errorText([&] { minimize(graph_, x, decodeOptimizer("momentum")); }),
              HasSubstr("depends on no variable"));
  const Output other = b_.variable("other", Shape{3});
  EXPECT_THAT(errorText([&] { minimized("momentum", {.variables = {other}}); }),
              HasSubstr("does not depend on 'other'"));
  minimized("momentum", {.variables = {w_}});
  EXPECT_THAT(errorText([&] { minimized("momentum", {.variables = {w_}}); }),
              AllOf(HasSubstr("'w/Momentum' already"), HasSubstr("each variable once")));
}

}  // namespace
}  // namespace dtf::optimizer
