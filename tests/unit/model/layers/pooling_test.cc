#include <gtest/gtest.h>

#include "tests/unit/graph/reference_interpreter.h"
#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

std::string shapeOf(const std::string& type, const std::string& settings,
                    const std::vector<int64_t>& example) {
  return BuiltLayer({layerOf(type, settings, "pool", 5)}, example).shape.str();
}

TEST(PoolingLayer, StridesByItsSizeUnlessItIsTold) {
  EXPECT_EQ(shapeOf("max_pooling2d", "{}", {28, 28, 3}), "[14, 14, 3]");
  EXPECT_EQ(shapeOf("average_pooling2d", "{pool_size: 3}", {9, 9, 3}), "[3, 3, 3]");
  EXPECT_EQ(shapeOf("max_pooling2d", "{pool_size: 3, strides: 2, padding: same}", {9, 9, 3}),
            "[5, 5, 3]");
  EXPECT_EQ(shapeOf("average_pooling2d", "{pool_size: [1, 2]}", {9, 9, 3}), "[9, 4, 3]");
}

TEST(PoolingLayer, GlobalAverageLeavesTheChannels) {
  EXPECT_EQ(shapeOf("global_average_pooling2d", "{}", {7, 5, 3}), "[3]");
}

TEST(PoolingLayer, GlobalMaximumIsThatOfEachChannel) {
  const BuiltLayer built({layerOf("global_max_pooling2d", "{}", "pool", 5)}, {2, 1, 3});
  EXPECT_EQ(built.shape, (Shape{3}));
  EXPECT_EQ(graph::testing::evaluate(built.model.graph,
                                     {{built.input, {1, 9, -3, 2, 5, -1, 0, 0, 0, -4, 0, 7}}},
                                     built.output),
            (std::vector<double>{2, 9, -1, 0, 0, 7}));
}

TEST(PoolingLayer, NeedsImages) {
  for (const char* type :
       {"max_pooling2d", "average_pooling2d", "global_max_pooling2d", "global_average_pooling2d"})
    EXPECT_NE(
        buildFailure({layerOf(type, "{}", "pool", 5)}, {10}).find("layer 'pool' needs images"),
        std::string::npos)
        << type;
}

TEST(PoolingLayer, ItsMeaningIsItsWindow) {
  EXPECT_EQ(layerOf("max_pooling2d", "{pool_size: 3, strides: 2}", "p").layer->meaning("p"),
            "max_pooling2d pool_size=3x3 strides=2x2 padding=valid");
}

}  // namespace
}  // namespace dtf::model
