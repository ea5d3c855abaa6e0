// The gradients of activations, losses, normalisation and parts of tensors.

#include <gmock/gmock.h>

#include "tests/unit/graph/autodiff_test.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::graph {
namespace {

using testing::AutodiffTest;
using testing::errorText;
using ::testing::HasSubstr;

TEST_F(AutodiffTest, Abs) {
  check(b_.abs(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Relu6) {
  check(b_.relu6(b_.scale(randomInput("x", {4, 5}), 5)));
}
TEST_F(AutodiffTest, LeakyRelu) {
  check(b_.leakyRelu(randomInput("x", {4, 5}), 0.2));
}
TEST_F(AutodiffTest, Elu) {
  check(b_.elu(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Gelu) {
  check(b_.gelu(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, ApproximateGelu) {
  check(b_.gelu(randomInput("x", {4, 5}), true));
}
TEST_F(AutodiffTest, Silu) {
  check(b_.silu(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Softplus) {
  check(b_.softplus(randomInput("x", {4, 5})));
}
TEST_F(AutodiffTest, Huber) {
  check(b_.huber(randomInput("x", {4, 5}), 0.8));
}
TEST_F(AutodiffTest, SoftmaxOfImages) {
  check(b_.softmax(randomInput("x", {2, 2, 3, 4})));
}

TEST_F(AutodiffTest, SoftmaxCrossEntropy) {
  const Output logits = randomInput("logits", {3, 4});
  const Output targets = b_.placeholder("targets", DType::kFloat32, {3, 4});
  feeds_[targets] = {0.7, 0.1, 0.1, 0.1, 0, 1, 0, 0, 0.25, 0.25, 0.25, 0.25};
  check(b_.softmaxCrossEntropy(logits, targets).loss);
}

TEST_F(AutodiffTest, BatchNorm) {
  check(b_.batchNorm(randomInput("x", {2, 3, 2, 4}), randomInput("scale", {4}),
                     randomInput("offset", {4}), 1e-3)
            .y);
}
TEST_F(AutodiffTest, LayerNorm) {
  check(b_.layerNorm(randomInput("x", {2, 3, 5}), randomInput("scale", {5}),
                     randomInput("offset", {5}), 1e-3)
            .y);
}

TEST_F(AutodiffTest, Concat) {
  check(b_.concat(
      {randomInput("a", {2, 3, 2}), randomInput("b", {2, 1, 2}), randomInput("c", {2, 2, 2})}, 1));
}
TEST_F(AutodiffTest, Slice) {
  check(b_.slice(randomInput("x", {4, 5, 3}), {1, 0, 2}, {2, 5, 1}));
}
TEST_F(AutodiffTest, Pad) {
  check(b_.pad(randomInput("x", {2, 3}), {1, 0}, {0, 2}));
}

TEST_F(AutodiffTest, GatherOfRowsThatComeTwice) {
  const Output indices = b_.placeholder("indices", DType::kInt32, {2, 2});
  feeds_[indices] = {3, 0, 3, 1};
  check(b_.gather(randomInput("table", {5, 3}), indices));
}

TEST_F(AutodiffTest, DepthwiseConv2D) {
  check(b_.depthwiseConv2D(randomInput("x", {2, 4, 4, 3}), randomInput("f", {2, 3, 3, 2}),
                           {{.stride = 2, .before = 1}, {.after = 1}}));
}

TEST_F(AutodiffTest, StatisticsAndTargetsHaveNoGradient) {
  const Output x = randomInput("x", {4, 3}), scale = randomInput("s", {3});
  const auto norm = b_.batchNorm(x, scale, scale, 1e-3);
  EXPECT_THAT(errorText([&] { addGradients(graph_, b_.mean(norm.mean), inputs_); }),
              HasSubstr("its statistics, outputs 1 and on, have no gradient"));
  const Output loss = b_.softmaxCrossEntropy(b_.scale(x, 2), x).loss;
  EXPECT_THAT(errorText([&] { addGradients(graph_, b_.mean(loss), inputs_); }),
              HasSubstr("its targets have no gradient"));
}

}  // namespace
}  // namespace dtf::graph
