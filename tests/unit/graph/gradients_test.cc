// The gradients of the ops of most models, against central differences.

#include "common/graph/gradients.h"

#include <gtest/gtest.h>

#include "tests/unit/graph/autodiff_test.h"

namespace dtf::graph {
namespace {

using testing::AutodiffTest;

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

// With a fixed key the mask is a constant, in the differences as in the gradient.
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

}  // namespace
}  // namespace dtf::graph
