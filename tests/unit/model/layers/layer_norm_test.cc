#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(LayerNormLayer, ScalesAndShiftsEachChannel) {
  const BuiltLayer built({layerOf("layer_normalization", "{}", "norm")}, {4, 4, 3});
  EXPECT_EQ(built.variables(), "norm/gamma [3], norm/beta [3]");
  EXPECT_EQ(built.shape.str(), "[4, 4, 3]");
  EXPECT_EQ(built.node("norm/gamma").attribute<std::string>("initializer"), "ones");
  EXPECT_EQ(layerOf("layer_normalization", "{epsilon: 0.01}", "n").layer->meaning("n"),
            "layer_normalization n: epsilon=0.01");
}

}  // namespace
}  // namespace dtf::model
