// Shapes and errors of the ops of synchronous replicas.

#include "common/graph/standard_ops.h"
#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;

class StandardSyncOps : public testing::OpTest {
 protected:
  Output counter(const std::string& name) {
    return {b_.node(
        "Variable", {},
        {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
        name)};
  }
  std::string refusal(const char* op, const std::vector<Output>& inputs,
                      const Attributes& attributes) {
    return errorText([&] { b_.node(op, inputs, attributes); });
  }
  static Attributes rank(int64_t rank) { return {{"rank", rank}}; }
  static Attributes replicas(int64_t rank, int64_t aggregate, int64_t total) {
    return {{"rank", rank}, {"replicas_to_aggregate", aggregate}, {"total_num_replicas", total}};
  }
};

TEST_F(StandardSyncOps, AGradientWaitsBesideTheVersionOfItsVariable) {
  const Output version = counter("w/sync_step"), step = counter("global_step");
  const Output ticket{b_.node("SyncReplicasTicket", {step}, rank(3))};
  EXPECT_EQ(graph_.spec(ticket), (TensorSpec{DType::kInt64, Shape{2}}));
  const Output gradient = b_.constant({4, 2}, 1);
  const Node& dense = graph_.node(
      b_.node("AccumulatorApplyGradient", {version, gradient, version, ticket}, rank(3)));
  EXPECT_EQ(dense.outputs[0], (TensorSpec{DType::kInt64, Shape()}));
  EXPECT_THAT(variablesOf(dense), ElementsAre(version));
  const Output ids = b_.constant({4}, 1, DType::kInt32);
  const Node& sparse = graph_.node(b_.node("SparseAccumulatorApplyGradient",
                                           {version, gradient, ids, version, ticket}, rank(3)));
  EXPECT_THAT(variablesOf(sparse), ElementsAre(version));
  EXPECT_THAT(
      refusal("SparseAccumulatorApplyGradient",
              {version, gradient, b_.constant({5}, 1, DType::kInt32), version, ticket}, rank(3)),
      HasSubstr("doesn't have a row for each of the indices"));
  EXPECT_THAT(refusal("AccumulatorApplyGradient", {version, gradient, ticket, ticket}, rank(3)),
              HasSubstr("local step int64[2] must be int64[]"));
  EXPECT_THAT(refusal("SyncReplicasTicket", {step}, rank(4096)), HasSubstr("from 0 to 4095"));
}

TEST_F(StandardSyncOps, AnArrivalReturnsTheDecision) {
  const Output step = counter("global_step"), version = counter("w/sync_step");
  const Output ticket{b_.node("SyncReplicasTicket", {step}, rank(0))};
  const Node& node = graph_.node(
      b_.node("SyncReplicasArrive", {step, ticket, version, version}, replicas(0, 3, 4)));
  EXPECT_EQ(node.outputs[0], (TensorSpec{DType::kInt64, Shape{4}}));
  EXPECT_EQ(node.outputs.size(), 3u);
  EXPECT_THAT(variablesOf(node), ElementsAre(step));
  EXPECT_THAT(refusal("SyncReplicasArrive", {step, ticket, version}, replicas(4, 3, 4)),
              HasSubstr("rank 4 is none of the 4 replicas"));
  EXPECT_THAT(refusal("SyncReplicasArrive", {step, ticket, version}, replicas(0, 0, 4)),
              HasSubstr("from 1 to 4096"));
  EXPECT_THAT(refusal("SyncReplicasArrive", {step, ticket}, replicas(0, 3, 4)),
              HasSubstr("at least 3 inputs"));
}

TEST_F(StandardSyncOps, AVariableTakesTheDecidedStepWithItsSlots) {
  const Output w = b_.variable("w", {4, 2}), m = b_.variable("m", {4, 2});
  const Output version = counter("w/sync_step"), decision = b_.constant({3}, 1, DType::kInt64);
  const Attributes adam{{"optimizer", std::string("momentum")}};
  const Node& node = graph_.node(b_.node("ApplyAccumulated", {w, m, version, decision}, adam));
  EXPECT_THAT(variablesOf(node), ElementsAre(w, m, version));
  EXPECT_EQ(node.outputs[0], (TensorSpec{DType::kInt64, Shape()}));
  EXPECT_THAT(refusal("ApplyAccumulated", {w, b_.variable("s", {4}), version, decision}, adam),
              HasSubstr("slot 0"));
  EXPECT_THAT(refusal("ApplyAccumulated", {w, m, version, version}, adam),
              HasSubstr("decision int64[] must be int64[1 + gradients]"));
  const Output many = b_.constant({2 + kReplicasMax}, 1, DType::kInt64);
  EXPECT_THAT(refusal("ApplyAccumulated", {w, m, version, many}, adam),
              HasSubstr("of at most 4096 gradients"));
  EXPECT_TRUE(graph_.node(b_.node("SyncReplicasFinish", {version}, {})).outputs.empty());
}

}  // namespace
}  // namespace dtf::graph
