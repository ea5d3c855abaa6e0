// Activations, losses, normalisation and parts of tensors, against values worked out by hand.

#include <cmath>

#include "tests/unit/graph/op_fixture.h"

namespace dtf::graph {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::errorText;
using ::testing::HasSubstr;

class BuilderLayers : public testing::OpTest {};

auto near(double x) {
  return DoubleNear(x, 1e-9);
}

// Values from PyTorch's torch.nn.functional.
TEST_F(BuilderLayers, Activations) {
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

TEST_F(BuilderLayers, Losses) {
  EXPECT_THAT(value(b_.huber(fed({3}, {0.5, -1, 3}), 1)), ElementsAre(0.125, 0.5, 2.5));
  const Output logits = fed({1, 2}, {0, std::log(3)}), targets = fed({1, 2}, {0.5, 0.5});
  const auto entropy = b_.softmaxCrossEntropy(logits, targets);
  EXPECT_THAT(value(entropy.loss), ElementsAre(near(std::log(4) - std::log(3) / 2)));
  EXPECT_THAT(value(entropy.backprop), ElementsAre(near(-0.25), near(0.25)));
}

TEST_F(BuilderLayers, Normalisation) {
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

TEST_F(BuilderLayers, PartsAndRows) {
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

TEST_F(BuilderLayers, DepthwiseConvolutionsHaveTensorFlowsLayout) {
  const Output x = fed({1, 1, 1, 2}, {10, 100}), f = fed({1, 1, 2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(value(b_.depthwiseConv2D(x, f)), ElementsAre(10, 20, 300, 400));
  EXPECT_THAT(errorText([&] {
                b_.depthwiseConv2D(open({1, 5, 5, 4}), open({3, 3, 2, 1}));
              }),
              HasSubstr("with 2 group(s)"));
}

}  // namespace
}  // namespace dtf::graph
