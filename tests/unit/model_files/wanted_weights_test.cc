#include "common/model_files/wanted_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/model/models.h"

namespace dtf::model_files {
namespace {

using model::dense;
using model::flatten;
using model::layerOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

WantedModel wantedOf(std::vector<int64_t> input, std::vector<model::LayerSpec> layers) {
  model::ModelSpec model;
  model.input_shape = std::move(input);
  model.layers = std::move(layers);
  model.loss.kind = model::Loss::kMse;
  return wantedWeights(model);
}

const WantedWeights& of(const WantedModel& model, const std::string& name) {
  for (const WantedWeights& each : model.variables)
    if (each.name == name) return each;
  ADD_FAILURE() << "no " << name;
  return model.variables.front();
}

TEST(WantedWeights, SaysWhatReadsThem) {
  const WantedModel model = wantedOf(
      {4, 4, 2}, {layerOf("conv2d", "{filters: 4, kernel_size: 3, groups: 2}", "conv"),
                  layerOf("depthwise_conv2d", "{kernel_size: 1, depth_multiplier: 2}", "deep"),
                  layerOf("batch_normalization", "{}", "norm"), flatten(), dense("fc", 3)});
  EXPECT_EQ(model.input_shape, (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(of(model, "conv/weights").use, WeightUse::kFilter);
  EXPECT_EQ(of(model, "deep/weights").use, WeightUse::kFilter);
  EXPECT_TRUE(of(model, "deep/weights").is_depthwise);
  EXPECT_FALSE(of(model, "conv/weights").is_depthwise);
  EXPECT_EQ(of(model, "norm/moving_mean").use, WeightUse::kVector);
  EXPECT_EQ(of(model, "fc/weights").use, WeightUse::kMatrix);
  EXPECT_EQ(of(model, "fc/biases").use, WeightUse::kVector);
}

// [1, 2, 2]: channels 0 and 1 of the left pixel, then of the right one.
TEST(WantedWeights, RowsOfAFlattenedImageAreKnownThroughWhatKeepsThem) {
  const WantedModel model =
      wantedOf({1, 2, 2}, {flatten(), layerOf("relu", "{}", "relu"),
                           layerOf("batch_normalization", "{}", "norm"), dense("first", 4),
                           layerOf("layer_normalization", "{}", "inner"), dense("second", 1)});
  EXPECT_THAT(of(model, "first/weights").rows.channels_first, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(of(model, "norm/gamma").rows.channels_first, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(of(model, "inner/gamma").rows.channels_first, IsEmpty());
  EXPECT_THAT(of(model, "second/weights").rows.channels_first, IsEmpty());
}

TEST(WantedWeights, OneChannelOrOnePositionHasOneOrder) {
  EXPECT_THAT(
      of(wantedOf({3, 2, 1}, {flatten(), dense("fc", 1)}), "fc/weights").rows.channels_first,
      IsEmpty());
  const WantedModel pooled =
      wantedOf({3, 2, 4}, {layerOf("global_average_pooling2d", "{}", "pool"), dense("fc", 1)});
  EXPECT_EQ(of(pooled, "fc/weights").rows, RowOrder{});
}

TEST(WantedWeights, ConcatenatedRowsKeepTheOrderOfEach) {
  const WantedModel model =
      wantedOf({1, 2, 2}, {layerOf("flatten", "{}", "rows"), dense("fc", 2),
                           layerOf("concatenate", "with: [rows]", "both"), dense("last", 1)});
  EXPECT_THAT(of(model, "last/weights").rows.channels_first, ElementsAre(0, 1, 2, 4, 3, 5));
}

TEST(WantedWeights, AnImageThatIsMadeOfADenseLayersUnitsIsInNoKnownOrder) {
  const auto rowsOf = [](const std::string& shape) {
    return of(wantedOf({3}, {dense("fc", 8), layerOf("reshape", "target_shape: " + shape, "image"),
                             layerOf("conv2d", "{filters: 1, kernel_size: 1}", "conv"), flatten(),
                             dense("last", 1)}),
              "conv/weights")
        .rows;
  };
  EXPECT_FALSE(rowsOf("[2, 2, 2]").known);
  EXPECT_TRUE(rowsOf("[4, 2, 1]").known);
  EXPECT_TRUE(rowsOf("[1, 1, 8]").known);
}

TEST(WantedWeights, AnImageInAnotherShapeIsInNoKnownOrder) {
  const WantedModel model = wantedOf(
      {2, 2, 2}, {layerOf("reshape", "target_shape: [2, 4]", "lines"),
                  layerOf("layer_normalization", "{}", "norm"), flatten(), dense("fc", 1)});
  EXPECT_FALSE(of(model, "norm/gamma").rows.known);
  EXPECT_FALSE(of(model, "fc/weights").rows.known);
}

// Another program may hold them as [channels, positions], and flatten them in that order.
TEST(WantedWeights, TheFlattenedPositionsOfAnImageAreInNoKnownOrder) {
  const auto rowsAfter = [](std::vector<model::LayerSpec> between) {
    std::vector<model::LayerSpec> layers = {
        layerOf("conv2d", "{filters: 6, kernel_size: 1}", "conv"),
        layerOf("reshape", "target_shape: [20, 6]", "lines")};
    layers.insert(layers.end(), between.begin(), between.end());
    layers.insert(layers.end(), {flatten(), dense("fc", 1)});
    return of(wantedOf({4, 5, 3}, layers), "fc/weights").rows;
  };
  EXPECT_FALSE(rowsAfter({}).known);
  EXPECT_FALSE(
      rowsAfter({layerOf("relu", "{}", "relu"), layerOf("dropout", "{rate: 0.1}", "drop")}).known);
  EXPECT_FALSE(rowsAfter({layerOf("batch_normalization", "{}", "norm")}).known);
  EXPECT_EQ(rowsAfter({dense("each", 2)}), RowOrder{}) << "its inputs are the last dimension";
  EXPECT_EQ(rowsAfter({layerOf("layer_normalization", "{}", "norm")}), RowOrder{});
  EXPECT_EQ(
      rowsAfter({layerOf("reshape", "target_shape: [5, 4, 6]", "image")}).channels_first.size(),
      120u);
}

TEST(WantedWeights, OfAnEmbeddingAreATable) {
  model::ModelSpec model;
  model.input_shape = {2};
  model.input_dtype = DType::kInt32;
  model.layers = {layerOf("embedding", "{input_dim: 5, output_dim: 3}", "words"), flatten(),
                  dense("fc", 1)};
  model.loss.kind = model::Loss::kMse;
  const WantedModel wanted = wantedWeights(model);
  EXPECT_EQ(wanted.variables[0].use, WeightUse::kTable);
  EXPECT_EQ(wanted.variables[1].rows, RowOrder{});
}

}  // namespace
}  // namespace dtf::model_files
