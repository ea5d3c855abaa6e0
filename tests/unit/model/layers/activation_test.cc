#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(ActivationLayer, EveryActivationIsALayer) {
  for (int i = 1; i <= static_cast<int>(Activation::kSoftmax); ++i) {
    const auto activation = static_cast<Activation>(i);
    const std::string name(nameOf(activation));
    const BuiltLayer built({layerOf(name, "{}", "a")}, {3, 4});
    EXPECT_EQ(built.shape.str(), "[3, 4]") << name;
    EXPECT_NE(built.output, built.input) << name;
    EXPECT_EQ(layerOf(name, "{}", "a").layer->meaning("a").find(name), 0u);
  }
}

TEST(ActivationLayer, LeakyReluHasASlope) {
  const BuiltLayer built({layerOf("leaky_relu", "{negative_slope: 0.3}", "a")}, {4});
  EXPECT_EQ(built.model.graph.node(built.output.node).attribute<double>("alpha"), 0.3);
  EXPECT_EQ(layerOf("leaky_relu", "{negative_slope: 0.3}", "a").layer->meaning("a"),
            "leaky_relu negative_slope=0.3");
}

}  // namespace
}  // namespace dtf::model
