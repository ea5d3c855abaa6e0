// Refusals and values worked out by hand of activations, losses, normalisation and parts of tensors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::errorText;
using testing::evaluate;
using testing::Feeds;
using ::testing::HasSubstr;
using testing::Values;

class LayerOps : public ::testing::Test {
 protected:
  Output fed(Shape shape, Values values, DType dtype = DType::kFloat32) {
    const Output input = b_.placeholder(graph_.uniqueName("fed"), dtype, std::move(shape));
    feeds_[input] = std::move(values);
    return input;
  }
  Output open(Shape shape, DType dtype = DType::kFloat32) {
    return b_.placeholder(graph_.uniqueName("open"), dtype, std::move(shape));
  }
  Values value(Output output) { return evaluate(graph_, feeds_, output); }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Feeds feeds_;
};

auto near(double x) {
  return DoubleNear(x, 1e-9);
}

// Of PyTorch's torch.nn.functional.
TEST_F(LayerOps, Activations) {
  const Output x = fed({3}, {-1, 0, 8});
  EXPECT_THAT(value(b_.relu6(x)), ElementsAre(0, 0, 6));
  EXPECT_THAT(value(b_.leakyRelu(x, 0.1)), ElementsAre(near(-0.1), 0, 8));
  EXPECT_THAT(value(b_.elu(x)), ElementsAre(near(std::exp(-1) - 1), 0, 8));
  EXPECT_THAT(value(b_.abs(x)), ElementsAre(1, 0, 8));
  const Output one = fed({1}, {1});
  EXPECT_THAT(value(b_.gelu(one)), ElementsAre(DoubleNear(0.8413447461, 1e-9)));
  EXPECT_THAT(value(b_.gelu(one, true)), ElementsAre(DoubleNear(0.8411919906, 1e-9)));
  EXPECT_THAT(value(b_.silu(one)), ElementsAre(DoubleNear(0.7310585786, 1e-9)));
  EXPECT_THAT(value(b_.softplus(one)), ElementsAre(DoubleNear(1.3132616875, 1e-9)));
}

TEST_F(LayerOps, Losses) {
  EXPECT_THAT(value(b_.huber(fed({3}, {0.5, -1, 3}), 1)), ElementsAre(0.125, 0.5, 2.5));
  const Output logits = fed({1, 2}, {0, std::log(3)}), targets = fed({1, 2}, {0.5, 0.5});
  const auto entropy = b_.softmaxCrossEntropy(logits, targets);
  EXPECT_THAT(value(entropy.loss), ElementsAre(near(std::log(4) - std::log(3) / 2)));
  EXPECT_THAT(value(entropy.backprop), ElementsAre(near(-0.25), near(0.25)));
}

TEST_F(LayerOps, Normalisation) {
  const Output x = fed({2, 2}, {1, 10, 3, 30});
  const Output scale = fed({2}, {2, 1}), offset = fed({2}, {5, 0});
  const auto batch = b_.batchNorm(x, scale, offset, 1e-30);
  EXPECT_THAT(value(batch.y), ElementsAre(near(3), near(-1), near(7), near(1)));
  EXPECT_THAT(value(batch.mean), ElementsAre(2, 20));
  EXPECT_THAT(value(batch.variance), ElementsAre(2, 200)) << "of rows - 1";
  EXPECT_THAT(value(batch.inverse), ElementsAre(near(1), near(0.1)));
  const Output moving = fed({2}, {4, 4});
  EXPECT_THAT(value(b_.batchNormInference(x, scale, offset, offset, moving, 1e-30)),
              ElementsAre(near(1), near(5), near(3), near(15)));
  const auto layer = b_.layerNorm(x, scale, offset, 1e-30);
  EXPECT_THAT(value(layer.y), ElementsAre(near(3), near(1), near(3), near(1)));
  EXPECT_THAT(value(layer.mean), ElementsAre(5.5, 16.5));
}

TEST_F(LayerOps, PartsAndRows) {
  const Output a = fed({2, 1}, {1, 2}), c = fed({2, 2}, {3, 4, 5, 6});
  EXPECT_THAT(value(b_.concat({a, c}, 1)), ElementsAre(1, 3, 4, 2, 5, 6));
  EXPECT_THAT(value(b_.concat({c, c}, 0)), ElementsAre(3, 4, 5, 6, 3, 4, 5, 6));
  EXPECT_THAT(value(b_.slice(c, {0, 1}, {2, 1})), ElementsAre(4, 6));
  EXPECT_THAT(value(b_.pad(a, {0, 1}, {1, 0})), ElementsAre(0, 1, 0, 2, 0, 0));
  const Output rows = fed({3}, {1, 0, 1}, DType::kUInt8);
  EXPECT_THAT(value(b_.gather(c, rows)), ElementsAre(5, 6, 3, 4, 5, 6));
  EXPECT_THAT(value(b_.unsortedSegmentSum(b_.gather(c, rows), rows, {3, 2})),
              ElementsAre(3, 4, 10, 12, 0, 0));
}

TEST_F(LayerOps, DepthwiseConvolutionsHaveTensorFlowsLayout) {
  const Output x = fed({1, 1, 1, 2}, {10, 100}), f = fed({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(value(b_.depthwiseConv2D(x, f)), ElementsAre(10, 20, 300, 400));
}

TEST_F(LayerOps, RefuseInWords) {
  const auto text = [](auto f) { return errorText(f); };
  const Output x = open({4, 3}), three = open({3}), four = open({4});
  EXPECT_THAT(text([&] { b_.batchNorm(x, four, three, 1e-3); }),
              HasSubstr("scale float32[4] must be float32[3]"));
  EXPECT_THAT(text([&] { b_.batchNorm(x, three, three, 0); }),
              HasSubstr("epsilon must be above 0"));
  EXPECT_THAT(text([&] { b_.batchNorm(three, three, three, 1e-3); }),
              HasSubstr("at least 2 dimension(s)"));
  EXPECT_THAT(text([&] {
                b_.layerNorm(open({0, 3}), three, three, 1e-3);
              }),
              HasSubstr("no elements to normalise"));
  EXPECT_THAT(text([&] { b_.layerNormGrad(x, x, three, three, four, 1e-3); }),
              HasSubstr("mean float32[3] must be float32[4]"));
  EXPECT_THAT(text([&] {
                b_.concat({x, open({4, 2, 1})}, 1);
              }),
              HasSubstr("must be the same but for dimension 1"));
  EXPECT_THAT(text([&] { b_.concat({x}, 2); }), HasSubstr("axis 2 is none of float32[4, 3]"));
  EXPECT_THAT(text([&] {
                b_.slice(x, {3, 0}, {2, 3});
              }),
              HasSubstr("dimension 0 of x float32[4, 3] has no 2 element(s) from 3 on"));
  EXPECT_THAT(text([&] {
                b_.pad(x, {1}, {1, 1});
              }),
              HasSubstr("before [1] must have a number for each of the 2 dimension(s)"));
  EXPECT_THAT(text([&] { b_.huber(x, -1); }), HasSubstr("delta must be above 0"));
  EXPECT_THAT(text([&] { b_.softmaxCrossEntropy(x, three); }), HasSubstr("must be the same"));
  EXPECT_THAT(text([&] {
                b_.depthwiseConv2D(open({1, 5, 5, 4}), open({3, 3, 2, 1}));
              }),
              HasSubstr("with 2 group(s)"));
}

}  // namespace
}  // namespace dtf::graph
