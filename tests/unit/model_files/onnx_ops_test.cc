// tests/e2e/export_python_test.py compares the nodes' results with onnxruntime.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/model_files/onnx_texts.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;

// One transposition at the beginning, and one before the layer that reads an example as a row.
TEST(OnnxOps, ImagesStayChannelsFirstBetweenConvolutions) {
  model::ModelSpec model = model::softmaxModel();
  model.layers = {
      model::layerOf("conv2d", "filters: 3\nkernel_size: 3\nactivation: relu", "first"),
      model::layerOf("max_pooling2d", "pool_size: 2", "pool"),
      model::layerOf("conv2d", "filters: 5\nkernel_size: 3\nactivation: gelu", "second"),
      model::layerOf("average_pooling2d", "pool_size: 2", "means"),
      model::layerOf("relu6", "{}", "bounded"),
      model::flatten(),
      model::dense("softmax", 10)};
  const std::map<std::string, int> ops = opsOf(onnxOf(model));
  EXPECT_EQ(ops.at("Transpose"), 2);
  EXPECT_EQ(ops.at("Conv"), 2);
  EXPECT_EQ(ops.count("Add"), 1u) << "of gelu, no bias";
  EXPECT_EQ(ops.at("Clip"), 1);
}

TEST(OnnxOps, AfterAGlobalPoolingNothingIsTurnedBack) {
  model::ModelSpec model = model::softmaxModel();
  model.layers = {
      model::layerOf("depthwise_conv2d", "kernel_size: 3\ndepth_multiplier: 4", "first"),
      model::layerOf("global_average_pooling2d", "{}", "means"), model::dense("softmax", 10)};
  EXPECT_EQ(opsOf(onnxOf(model)).at("Transpose"), 1);
}

TEST(OnnxOps, NormsWithoutTrainedScaleOrOffsetAreFactorsAndSummands) {
  model::ModelSpec model = model::softmaxModel();
  model.input_shape = {4};
  model.layers = {
      model::layerOf("normalization", "mean: [1, 1, 3, 5]\nstd: [2, 2, 4, 0.5]", "known"),
      model::layerOf("normalization", "mean: [3]\nstd: [0.25]", "alike"),
      model::layerOf("batch_normalization", "scale: false\nepsilon: 0.25", "centered"),
      model::layerOf("batch_normalization", "scale: false\ncenter: false\nepsilon: 0.25", "plain"),
      model::dense("softmax", 10)};
  const std::string onnx = onnxOf(model);
  EXPECT_EQ(opsOf(onnx).count("Concat"), 0u);
  const auto named = [&onnx](const std::string& layer, const std::string& what) {
    for (const std::string& name : textsAt(onnx, {7, 5, 8}))
      if (name.starts_with(layer) && name.ends_with(what)) return initializer(onnx, name);
    ADD_FAILURE() << "no " << what << " of " << layer;
    return std::vector<float>{};
  };
  EXPECT_THAT(named("known", "/factors"), ElementsAre(0.5F, 0.5F, 0.25F, 2.0F));
  EXPECT_THAT(named("known", "/summands"), ElementsAre(-0.5F, -0.5F, -0.75F, -10.0F));
  EXPECT_THAT(named("alike", "/factors"), ElementsAre(4.0F, 4.0F, 4.0F, 4.0F));
  EXPECT_THAT(named("alike", "/summands"), ElementsAre(-12.0F, -12.0F, -12.0F, -12.0F));
  // zerosFor() gives them a variance of 0.
  EXPECT_THAT(named("centered", "/factors"), ElementsAre(2.0F, 2.0F, 2.0F, 2.0F));
  EXPECT_THAT(named("plain", "/factors"), ElementsAre(2.0F, 2.0F, 2.0F, 2.0F));
}

}  // namespace
}  // namespace dtf::model_files
