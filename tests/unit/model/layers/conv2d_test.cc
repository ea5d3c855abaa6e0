#include <gtest/gtest.h>

#include "tests/unit/model/layers/layer_test.h"

namespace dtf::model {
namespace {

LayerSpec conv(const std::string& settings) {
  return layerOf("conv2d", settings, "conv", 5);
}

Shape shapeOf(const std::string& settings, const std::vector<int64_t>& example) {
  return BuiltLayer({conv(settings)}, example).shape;
}

TEST(Conv2dLayer, HasTheVariablesThatTensorFlowHas) {
  const BuiltLayer built({conv("{filters: 8, kernel_size: [5, 3], activation: relu}")},
                         {28, 28, 3});
  EXPECT_EQ(built.variables(), "conv/weights [5, 3, 3, 8], conv/biases [8]");
  EXPECT_EQ(built.shape.str(), "[24, 26, 8]");
  EXPECT_EQ(built.model.graph.node(built.output.node).op, "Relu");
}

TEST(Conv2dLayer, PadsAsItIsTold) {
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 5, padding: same}", {28, 28, 1}).str(),
            "[28, 28, 4]");
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 5, padding: same, strides: 2}", {27, 28, 1}).str(),
            "[14, 14, 4]");
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 5, padding: valid}", {28, 28, 1}).str(),
            "[24, 24, 4]");
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 5, padding: 1}", {28, 28, 1}).str(), "[26, 26, 4]");
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 5, padding: [0, 1, 2, 3]}", {28, 28, 1}).str(),
            "[25, 29, 4]");
}

TEST(Conv2dLayer, StridesDilatesAndGroups) {
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 3, strides: [1, 3]}", {9, 9, 2}).str(), "[7, 3, 4]");
  EXPECT_EQ(shapeOf("{filters: 4, kernel_size: 3, dilation_rate: 2}", {9, 9, 2}).str(),
            "[5, 5, 4]");
  const BuiltLayer built({conv("{filters: 6, kernel_size: 1, groups: 2, use_bias: false}")},
                         {4, 4, 4});
  EXPECT_EQ(built.variables(), "conv/weights [1, 1, 2, 6]");
}

TEST(Conv2dLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(buildFailure({conv("{filters: 4, kernel_size: 3}")}, {784}),
            "job.yaml:5:7: error: layer 'conv' needs images of [height, width, channels], got "
            "[784]: model.input.shape is the shape of one example, [28, 28, 1]");
  EXPECT_EQ(buildFailure({conv("{filters: 4, kernel_size: 9}")}, {8, 28, 1}),
            "job.yaml:5:7: error: layer 'conv': a window of 9 x 9 does not fit into images of 8 x "
            "28: pad them (padding: same), or use a smaller window");
  EXPECT_EQ(buildFailure({conv("{filters: 4, kernel_size: 1, groups: 3}")}, {4, 4, 6}),
            "job.yaml:5:7: error: layer 'conv': 3 groups must divide both its 6 input channels and "
            "its 4 filters");
}

TEST(Conv2dLayer, RefusesSettingsThatAreNone) {
  EXPECT_EQ(readFailure("conv2d", "{kernel_size: 3}"),
            "settings:1:1: error: missing key 'filters' in 'conv2d': channels of the output");
  EXPECT_NE(readFailure("conv2d", "{filters: 1, kernel_size: [3, 3, 3]}")
                .find("'kernel_size' must be one number or 2 of them, got 3"),
            std::string::npos);
  EXPECT_NE(readFailure("conv2d", "{filters: 1, kernel_size: 3, padding: sam}")
                .find("unknown padding 'sam' - did you mean 'same'?"),
            std::string::npos);
}

TEST(Conv2dLayer, ItsMeaningIsAllThatChangesWhatItComputes) {
  EXPECT_EQ(
      conv("{filters: 8, kernel_size: 5, padding: same, activation: relu}").layer->text("conv"),
      "conv2d conv: filters=8 kernel_size=5x5 strides=1x1 padding=same activation=relu "
      "use_bias=true kernel_initializer=glorot_uniform");
  EXPECT_EQ(
      conv("{filters: 8, kernel_size: 5, groups: 2, dilation_rate: [1, 2], padding: [1, 0, 1, 0], "
           "kernel_initializer: he_normal}")
          .layer->meaning("conv"),
      "conv2d conv: filters=8 kernel_size=5x5 strides=1x1 dilation_rate=1x2 padding=1,0,1,0 "
      "groups=2 "
      "activation=none use_bias=true");
}

}  // namespace
}  // namespace dtf::model
