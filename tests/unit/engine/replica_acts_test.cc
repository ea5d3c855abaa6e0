// Single acts; tests/conformance/sync_replicas_test.cc has whole steps of several clients.

#include "common/engine/replica_acts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::span<const std::byte>;

// A variable of 3 rows of one element and its version, in steps of gradient descent at rate 1.
class ReplicaActsTest : public ::testing::Test {
 protected:
  ReplicaActsTest() {
    const std::vector<float> values = {10, 20, 30};
    w_.set(std::as_bytes(std::span(values)));
    setVersion(0);
  }
  Output counter(const std::string& name) {
    return {b_.node(
        "Variable", {},
        {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
        name)};
  }
  void setVersion(int64_t value) { version_.set(std::as_bytes(std::span(&value, 1))); }

  // Brings a gradient of all rows, or of the rows that `ids` names; returns the output.
  int64_t bring(const std::vector<float>& gradient, int64_t rank, int64_t ticket, int64_t step,
                const std::vector<int32_t>& ids = {}) {
    const Output version = counter(""), number = b_.constant({2}, 1, DType::kInt64);
    const auto rows = static_cast<int64_t>(gradient.size());
    std::vector<Output> inputs = {version, b_.constant({rows, 1}, 1)};
    if (!ids.empty()) inputs.push_back(b_.constant({rows}, 1, DType::kInt32));
    inputs.push_back(version);
    inputs.push_back(number);
    const char* const op =
        ids.empty() ? "AccumulatorApplyGradient" : "SparseAccumulatorApplyGradient";
    const auto act = makeReplicaAct(graph_, graph_.node(b_.node(op, inputs, {{"rank", rank}})));
    const std::vector<int64_t> tickets = {ticket, 0};
    std::vector<Bytes> values = {std::as_bytes(std::span(gradient))};
    if (!ids.empty()) values.push_back(std::as_bytes(std::span(ids)));
    values.push_back(std::as_bytes(std::span(&step, 1)));
    values.push_back(std::as_bytes(std::span(tickets)));
    const std::vector<Variable*> variables = {&version_};
    act->run(variables, values);
    return reinterpret_cast<const int64_t*>(act->output(0).data())[0];
  }

  // Takes the decided step; returns the version after it.
  int64_t take(const std::vector<int64_t>& decision, bool is_sparse = false) {
    const Output w = b_.variable("", {3, 1}), version = counter("");
    const Output decided = b_.constant({static_cast<int64_t>(decision.size())}, 1, DType::kInt64);
    const auto act = makeReplicaAct(
        graph_, graph_.node(b_.node("ApplyAccumulated", {w, version, decided},
                                    {{"optimizer", std::string("gradient_descent learning_rate=1")},
                                     {"sparse", is_sparse}},
                                    graph_.uniqueName("update"))));
    const std::vector<Variable*> variables = {&w_, &version_};
    const std::vector<Bytes> inputs = {std::as_bytes(std::span(decision))};
    act->run(variables, inputs);
    return reinterpret_cast<const int64_t*>(act->output(0).data())[0];
  }
  std::vector<float> values() {
    const Variable::Value value = w_.read();
    const auto all = value->as<float>();
    return {all.begin(), all.end()};
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(1 << 20, "ps/0");
  Variable w_{"w", {DType::kFloat32, {3, 1}}, budget_};
  Variable version_{"w/sync_step", {DType::kInt64, {}}, budget_};
};

TEST_F(ReplicaActsTest, AStepIsTakenOnceWhoeverBringsIt) {
  EXPECT_EQ(bring({1, 2, 3}, 0, 5, 0), 0);
  EXPECT_EQ(bring({3, 2, 1}, 1, 6, 0), 0);
  EXPECT_EQ(take({0, 5, 6}), 1);
  EXPECT_THAT(values(), ElementsAre(8, 18, 28));
  EXPECT_EQ(take({0, 5, 6}), 1);
  EXPECT_THAT(values(), ElementsAre(8, 18, 28));
  EXPECT_EQ(version_.accumulator().size(), 0u);
}

TEST_F(ReplicaActsTest, WithoutADecisionNothingChanges) {
  EXPECT_EQ(take({-1, 0, 0}), 0);
  EXPECT_THAT(values(), ElementsAre(10, 20, 30));
}

TEST_F(ReplicaActsTest, AStaleGradientIsDropped) {
  setVersion(3);
  EXPECT_EQ(bring({1, 2, 3}, 0, 5, 2), -1);
  EXPECT_EQ(bring({1, 2, 3}, 0, 6, 3), 3);
  EXPECT_EQ(version_.accumulator().size(), 1u);
}

// A row's mean is over the gradients that name it, as TensorFlow's and a job's.
TEST_F(ReplicaActsTest, RowsAreTheMeanOfThoseThatNameThem) {
  bring({1, 1}, 0, 5, 0, {0, 0});
  bring({4, 3}, 1, 6, 0, {0, 2});
  EXPECT_EQ(take({0, 5, 6}, true), 1);
  EXPECT_THAT(values(), ElementsAre(7, 20, 27));
}

TEST_F(ReplicaActsTest, AVariableThatLostItsGradientsIsNamed) {
  bring({1, 2, 3}, 0, 5, 0);
  setVersion(0);
  EXPECT_THAT(errorText([&] {
                take({0, 5});
              }),
              HasSubstr("the variable 'w/sync_step' lacks a gradient of the step"));
  EXPECT_THAT(errorText([&] {
                take({4, 5});
              }),
              HasSubstr("the variable has taken 0 steps, but step 4 is to be taken"));
}

TEST_F(ReplicaActsTest, AGradientOfAnotherShapeIsRefused) {
  bring({1, 2}, 1, 5, 0);
  EXPECT_THAT(errorText([&] {
                take({0, 5});
              }),
              HasSubstr("the gradient of rank 1 has another shape"));
  EXPECT_THAT(values(), ElementsAre(10, 20, 30));
}

}  // namespace
}  // namespace dtf::engine
