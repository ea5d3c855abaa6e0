// Every gradient is compared with central differences of the forward graph, both in double
// precision.

#include "common/graph/autodiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "common/base/random.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph {
namespace {

using ::testing::AllOf;
using testing::errorText;
using testing::evaluate;
using testing::Feeds;
using ::testing::HasSubstr;
using testing::Values;

class AutodiffTest : public ::testing::Test {
 protected:
  // Away from zero, where Relu has a kink that differences would step over.
  Output randomInput(const std::string& name, Shape shape) {
    const Output input = b_.placeholder(name, DType::kFloat32, shape);
    Values values;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const double x = random_.uniform(0.1f, 2.0f);
      values.push_back(random_.below(2) == 0 ? x : -x);
    }
    feeds_[input] = values;
    inputs_.push_back(input);
    return input;
  }

  // Weighs `y`'s elements unlike one another, so that no error cancels out, and takes the mean.
  Output lossOf(Output y) {
    const Shape shape = graph_.spec(y).shape;
    const Output weights = b_.placeholder("weights", DType::kFloat32, shape);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      feeds_[weights].push_back(random_.uniform(-1.0f, 1.0f));
    }
    return b_.mean(b_.mul(y, weights));
  }

  void checkLoss(Output loss) {
    const std::vector<Output> gradients = addGradients(graph_, loss, inputs_);
    ASSERT_EQ(gradients.size(), inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      SCOPED_TRACE(graph_.node(inputs_[i].node).name);
      ASSERT_EQ(graph_.spec(gradients[i]), graph_.spec(inputs_[i]));
      checkElements(loss, inputs_[i], evaluate(graph_, feeds_, gradients[i]));
    }
  }

  void checkElements(Output loss, Output input, const Values& gradient) {
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < gradient.size(); ++i) {
      Feeds moved = feeds_;
      moved[input][i] += kStep;
      const double above = evaluate(graph_, moved, loss)[0];
      moved[input][i] -= 2 * kStep;
      const double below = evaluate(graph_, moved, loss)[0];
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(gradient[i], expected, 1e-8 + 1e-7 * std::abs(expected)) << "element " << i;
    }
  }

  void check(Output y) { checkLoss(lossOf(y)); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Random random_{20};
  Feeds feeds_;
  std::vector<Output> inputs_;
};

TEST_F(AutodiffTest, Identity) {
  check(Output{b_.node("Identity", {randomInput("x", {2, 3})})});
}
TEST_F(AutodiffTest, Reshape) {
  check(b_.reshape(randomInput("x", {2, 3}), {3, 1, 2}));
}
TEST_F(AutodiffTest, Add) {
  check(b_.add(randomInput("a", {2, 3}), randomInput("b", {2, 3})));
}
TEST_F(AutodiffTest, Sub) {
  check(b_.sub(randomInput("a", {2, 3}), randomInput("b", {2, 3})));
}
TEST_F(AutodiffTest, Mul) {
  check(b_.mul(randomInput("a", {2, 3}), randomInput("b", {2, 3})));
}
TEST_F(AutodiffTest, SquaredDifference) {
  check(b_.squaredDifference(randomInput("a", {2, 3}), randomInput("b", {2, 3})));
}
TEST_F(AutodiffTest, Scale) {
  check(b_.scale(randomInput("x", {4}), -2.5));
}
TEST_F(AutodiffTest, AddN) {
  check(b_.addN({randomInput("a", {3}), randomInput("b", {3}), randomInput("c", {3})}));
}
TEST_F(AutodiffTest, BiasAdd) {
  check(b_.biasAdd(randomInput("x", {3, 2}), randomInput("b", {2})));
}
TEST_F(AutodiffTest, Mean) {
  check(b_.mean(randomInput("x", {2, 3})));
}
TEST_F(AutodiffTest, Relu) {
  check(b_.relu(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Sigmoid) {
  check(b_.sigmoid(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Tanh) {
  check(b_.tanh(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Softmax) {
  check(b_.softmax(randomInput("x", {3, 4})));
}
TEST_F(AutodiffTest, SigmoidCrossEntropy) {
  check(b_.sigmoidCrossEntropy(randomInput("x", {2, 3}), randomInput("z", {2, 3})));
}

// With the key held fast the mask is a constant, in the differences as in the gradient.
TEST_F(AutodiffTest, Dropout) {
  const Output key = b_.placeholder("key", DType::kInt64, {2});
  feeds_[key] = {3, 77};
  check(b_.dropout(randomInput("x", {5, 17}), key, 0.4, 2));
}

TEST_F(AutodiffTest, SparseSoftmaxCrossEntropy) {
  for (const DType dtype : {DType::kUInt8, DType::kInt32, DType::kInt64}) {
    const std::string name(dtypeName(dtype));
    const Output labels = b_.placeholder(name, dtype, {3});
    feeds_[labels] = {2, 0, 1};
    const Output logits = randomInput("logits_" + name, {3, 4});
    inputs_ = {logits};
    const Output loss = b_.sparseSoftmaxCrossEntropy(logits, labels).loss;
    const auto scope = b_.nameScope(name + "_loss");
    check(loss);
  }
}

TEST_F(AutodiffTest, MatMulInAllFourTranspositions) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      SCOPED_TRACE(std::to_string(ta) + std::to_string(tb));
      const auto scope = b_.nameScope("case_" + std::to_string(ta) + std::to_string(tb));
      inputs_.clear();
      const Output a = randomInput("a", ta ? Shape({3, 2}) : Shape({2, 3}));
      const Output b = randomInput("b", tb ? Shape({4, 3}) : Shape({3, 4}));
      check(b_.matMul(a, b, ta, tb));
    }
  }
}

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
