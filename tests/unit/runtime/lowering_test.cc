#include "common/runtime/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"

namespace dtf::runtime {
namespace {

using graph::Output;
using ::testing::HasSubstr;

class LoweringTest : public ::testing::Test {
 protected:
  std::vector<std::string> opsOf(const LoweredStep& step) {
    std::vector<std::string> ops;
    for (const Operation& operation : step.operations) ops.push_back(operation.op);
    return ops;
  }
  std::string errorOf(std::vector<Output> fetches) {
    try {
      lower(graph_, fetches);
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }
  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
};

TEST_F(LoweringTest, LeavesOutWhatIsNotNeeded) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  b_.sigmoid(x);
  EXPECT_THAT(opsOf(lower(graph_, std::vector{b_.relu(x)})), ::testing::ElementsAre("Relu"));
}

TEST_F(LoweringTest, LooksThroughReshapeAndIdentity) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2, 3});
  const Output y = b_.relu(Output{b_.node("Identity", {b_.reshape(x, {6})})});
  const LoweredStep step = lower(graph_, std::vector{y});
  ASSERT_EQ(step.operations.size(), 1u);
  EXPECT_EQ(step.operations[0].inputs[0], x);
  EXPECT_EQ(step.operations[0].input_specs[0].shape, (Shape{6}));
}

TEST_F(LoweringTest, KnowsConstantsAndTheGradientOfAMean) {
  const Output spread = b_.meanGrad(b_.constant({}, 1), {4});
  const Output zeros = Output{b_.node("ZerosLike", {spread})};
  const LoweredStep step = lower(graph_, std::vector{spread, zeros});
  EXPECT_TRUE(step.operations.empty());
  EXPECT_EQ(step.constants.at(spread).value, 0.25);
  EXPECT_EQ(step.constants.at(zeros).value, 0);
}

// A known value is never bound, whether a node reads it or not.
TEST_F(LoweringTest, APlaceholderWithAKnownValueIsAConstant) {
  const Output known = b_.placeholder("known", DType::kFloat32, {2});
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  b_.placeholder("unread", DType::kFloat32, {2});
  KnownValues values;
  for (const char* name : {"known", "unread"})
    values.emplace(name, Tensor(DType::kFloat32, Shape{2}));
  const LoweredStep step = lower(graph_, std::vector{b_.add(x, known)}, values);
  ASSERT_EQ(step.inputs.size(), 1u);
  EXPECT_EQ(step.inputs[0].name, "x");
  EXPECT_EQ(step.constants.at(known).elements, &values.at("known"));
}

TEST_F(LoweringTest, KeepsWhatAPushWaitsFor) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  const Output waited = b_.sigmoid(x);
  b_.node("_Push", {b_.relu(x)}, {{"variable", "w"}}, {}, {waited.node});
  EXPECT_THAT(opsOf(lower(graph_, {})), ::testing::ElementsAre("Sigmoid", "Relu"));
}

TEST_F(LoweringTest, ASparsePushIsOfItsGradientWhateverItsIndices) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2, 3});
  const Output ids = b_.placeholder("ids", DType::kInt32, {2});
  const Output gradient = b_.relu(x);
  b_.node("_PushSparse", {gradient, ids}, {{"variable", "table"}});
  const LoweredStep step = lower(graph_, {});
  ASSERT_EQ(step.gradients.size(), 1u);
  EXPECT_EQ(step.gradients[0].name, "table");
  EXPECT_EQ(step.gradients[0].spec.shape, (Shape{2, 3}));
  EXPECT_THAT(opsOf(step), ::testing::ElementsAre("Relu"));
}

TEST_F(LoweringTest, RefusesTwoGradientsOfOneVariable) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  b_.node("_Push", {x}, {{"variable", "w"}}, "first");
  b_.node("_Push", {x}, {{"variable", "w"}}, "second");
  EXPECT_THAT(errorOf({}), HasSubstr("'second': variable 'w' has a second gradient"));
}

TEST_F(LoweringTest, FetchesOfAnyType) {
  const Output x = b_.placeholder("x", DType::kUInt8, {2});
  const LoweredStep step = lower(graph_, std::vector{x});
  ASSERT_EQ(step.fetches.size(), 1u);
  EXPECT_EQ(step.fetches[0].spec.dtype, DType::kUInt8);
}

TEST_F(LoweringTest, RefusesSingleTensorsFromOtherTasks) {
  const Output arrived{b_.node(
      "_Recv", {}, {{"key", "k"}, {"dtype", DType::kFloat32}, {"shape", Shape{2}}}, "arrived")};
  EXPECT_THAT(errorOf({b_.relu(arrived)}), HasSubstr("'arrived' (_Recv)"));
}

TEST_F(LoweringTest, RefusesWhatActsOnAVariableWhenItRuns) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2});
  const Output set{b_.node("Assign", {b_.variable("w", {2}), x}, {}, "set")};
  EXPECT_THAT(errorOf({set}), HasSubstr("'set' (Assign)"));
}

TEST(SortTopologically, PutsReadersAfterWhatTheyRead) {
  const auto make = [](std::vector<Output> inputs, int32_t output) {
    Operation operation;
    operation.inputs = std::move(inputs);
    operation.outputs = {{{output}, 0}};
    return operation;
  };
  std::vector<Operation> operations = {make({{{2}, 0}}, 3), make({}, 1), make({{{1}, 0}}, 2)};
  sortTopologically(operations);
  EXPECT_EQ(operations[0].outputs[0].node.value, 1);
  EXPECT_EQ(operations[1].outputs[0].node.value, 2);
  EXPECT_EQ(operations[2].outputs[0].node.value, 3);
}

}  // namespace
}  // namespace dtf::runtime
