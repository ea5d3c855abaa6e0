// Every gradient is compared with central differences of the forward graph, both in double
// precision.

#include "common/graph/autodiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/graph/op_def.h"
#include "tests/unit/graph/autodiff_test.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using testing::AutodiffTest;
using testing::errorText;
using testing::evaluate;
using ::testing::HasSubstr;
using testing::Values;

TEST_F(AutodiffTest, AWholeNetworkWithASharedWeight) {
  const Output x = randomInput("x", {5, 4});
  const Output w = randomInput("w", {4, 4});
  const Output bias = randomInput("b", {4});
  const Output hidden = b_.tanh(b_.biasAdd(b_.matMul(x, w), bias));
  const Output again = b_.sigmoid(b_.biasAdd(b_.matMul(hidden, w), bias));
  const Output labels = b_.placeholder("labels", DType::kInt32, {5});
  feeds_[labels] = {0, 3, 2, 1, 1};
  checkLoss(b_.mean(b_.sparseSoftmaxCrossEntropy(b_.add(again, hidden), labels).loss));
}

TEST_F(AutodiffTest, OneTensorReadTwiceBySameNode) {
  const Output x = randomInput("x", {3});
  check(b_.mul(b_.add(x, x), x));
}

TEST_F(AutodiffTest, InnerTensorsHaveGradientsToo) {
  const Output x = randomInput("x", {3});
  const Output y = b_.sigmoid(x);
  const Output loss = lossOf(b_.mul(y, y));
  const std::vector<Output> gradients = addGradients(graph_, loss, std::array{y, x, loss});
  feeds_[y] = evaluate(graph_, feeds_, y);
  checkElements(loss, y, evaluate(graph_, feeds_, gradients[0]));
  feeds_.erase(y);
  checkElements(loss, x, evaluate(graph_, feeds_, gradients[1]));
  EXPECT_EQ(evaluate(graph_, feeds_, gradients[2]), Values{1});
}

TEST_F(AutodiffTest, AddsNothingForTensorsNobodyAskedFor) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2, 3});
  const Output w = b_.variable("w", {3, 4});
  const Output loss = b_.mean(b_.matMul(x, w));
  addGradients(graph_, loss, std::array{w});
  int products = 0;
  for (const Node& node : graph_.nodes()) products += node.op == "MatMul" ? 1 : 0;
  EXPECT_EQ(products, 2) << "the forward product and w's gradient, not x's";
}

TEST_F(AutodiffTest, GradientsAreSummedOnTheDeviceThatMakesThem) {
  const Output w = [this] {
    const auto device = b_.deviceScope("/job:ps/task:1");
    return b_.variable("w", {2});
  }();
  const auto device = b_.deviceScope("/job:worker/task:0/gpu:0");
  const Output loss = b_.mean(b_.mul(b_.relu(w), b_.tanh(w)));
  const Output gradient = addGradients(graph_, loss, std::array{w})[0];
  EXPECT_EQ(graph_.node(gradient.node).op, "AddN");
  EXPECT_EQ(graph_.node(gradient.node).device, "/job:worker/task:0/device:GPU:0");
}

TEST_F(AutodiffTest, TheSameGraphGivesTheSameNodes) {
  const auto names = [] {
    Graph graph(standardOps());
    Builder b(graph);
    const Output w = b.variable("w", {3, 3});
    const Output loss = b.mean(b.matMul(b.matMul(w, w), b.relu(w)));
    addGradients(graph, loss, std::array{w});
    std::string text;
    for (const Node& node : graph.nodes()) {
      text += node.name + "(";
      for (const Output& input : node.inputs) text += graph.node(input.node).name + ",";
      text += ") ";
    }
    return text;
  };
  EXPECT_EQ(names(), names());
}

TEST_F(AutodiffTest, RefusesByName) {
  const Output x = b_.placeholder("x", DType::kFloat32, {2, 3});
  const Output w = b_.variable("w", {2, 3});
  const Output unused = b_.variable("unused", {5});
  const Output labels = b_.placeholder("labels", DType::kInt32, {2});
  const Output loss = b_.mean(b_.mul(x, w));
  EXPECT_THAT(errorText([&] {
                addGradients(graph_, loss, std::array{w, unused});
              }),
              AllOf(HasSubstr("'unused'"), HasSubstr("does not depend")));
  const Output blocked = b_.mean(Output{b_.node("ZerosLike", {w})});
  EXPECT_THAT(errorText([&] { addGradients(graph_, blocked, std::array{w}); }), HasSubstr("'w'"));
  const Output accuracy = b_.accuracy(b_.add(x, w), labels);
  EXPECT_THAT(errorText([&] { addGradients(graph_, accuracy, std::array{w}); }),
              AllOf(HasSubstr("'Accuracy'"), HasSubstr("Accuracy has no gradient")));
  EXPECT_THAT(errorText([&] { addGradients(graph_, b_.relu(w), std::array{w}); }),
              HasSubstr("scalar"));
  EXPECT_THAT(errorText([&] { addGradients(graph_, loss, std::array{labels}); }),
              AllOf(HasSubstr("'labels'"), HasSubstr("not float32")));
  const auto entropy = b_.sparseSoftmaxCrossEntropy(w, labels);
  const Output wrong = b_.mean(entropy.backprop);
  EXPECT_THAT(errorText([&] { addGradients(graph_, wrong, std::array{w}); }),
              HasSubstr("backprop"));
}

}  // namespace
}  // namespace dtf::graph
