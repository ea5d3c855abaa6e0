#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

TEST(ReshapeLayer, KeepsTheBatchAndTheElements) {
  EXPECT_EQ(BuiltLayer({layerOf("reshape", "{target_shape: [2, 3, 4]}", "r")}, {24}).shape.str(),
            "[2, 3, 4]");
  EXPECT_EQ(buildFailure({layerOf("reshape", "{target_shape: [2, 3]}", "r", 8)}, {7}),
            "job.yaml:8:7: error: layer 'r' can't make [2, 3] of [7]: they differ in their number "
            "of elements");
  EXPECT_EQ(layerOf("reshape", "{target_shape: [2, 3]}", "r").layer->meaning("r"),
            "reshape target_shape=[2, 3]");
}

TEST(ReshapeLayer, HasFromOneToEightSizes) {
  EXPECT_NE(readFailure("reshape", "{target_shape: []}")
                .find("'target_shape' must have from 1 to 8 sizes, got 0"),
            std::string::npos);
  EXPECT_NE(readFailure("reshape", "{target_shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]}").find("got 9"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::model
