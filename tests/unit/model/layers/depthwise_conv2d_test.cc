#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(DepthwiseConv2dLayer, HasFiltersForEachChannel) {
  const BuiltLayer built(
      {layerOf("depthwise_conv2d", "{kernel_size: 3, depth_multiplier: 2, padding: same}", "conv")},
      {8, 8, 3});
  EXPECT_EQ(built.variables(), "conv/weights [3, 3, 3, 2], conv/biases [6]");
  EXPECT_EQ(built.shape.str(), "[8, 8, 6]");
  EXPECT_EQ(layerOf("depthwise_conv2d", "{kernel_size: 3}", "c").layer->meaning("c"),
            "depthwise_conv2d c: depth_multiplier=1 kernel_size=3x3 strides=1x1 padding=valid "
            "activation=none "
            "use_bias=true");
}

}  // namespace
}  // namespace dtf::model
