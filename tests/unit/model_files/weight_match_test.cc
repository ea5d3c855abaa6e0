#include "common/model_files/weight_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/base/error.h"

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const RowOrder kTwoByTwo = {.known = true, .channels_first = {0, 2, 1, 3}};

// Its elements are 1, 2, 3, ... in the order of the file.
FoundTensor counted(const std::string& name, const Shape& shape,
                    WeightLayout layout = WeightLayout::kDtf) {
  FoundTensor tensor{name, Tensor(DType::kFloat32, shape), layout};
  const std::span<float> values = tensor.value.as<float>();
  std::iota(values.begin(), values.end(), 1.0F);
  return tensor;
}

FoundWeights foundOf(const std::vector<std::pair<std::string, Shape>>& tensors,
                     WeightLayout layout = WeightLayout::kDtf) {
  FoundWeights found;
  for (const auto& [name, shape] : tensors) found.tensors.push_back(counted(name, shape, layout));
  return found;
}

std::vector<float> valuesOf(const std::optional<MatchedWeights>& found) {
  if (!found) return {};
  const std::span<const float> values = found->value.as<float>();
  return {values.begin(), values.end()};
}

// Matches one tensor with one variable.
WeightMatch matchOf(const WantedWeights& wanted, const Shape& held, WeightLayout layout) {
  return matchWeights({{}, {wanted}}, foundOf({{wanted.name, held}}, layout));
}

TEST(WeightMatch, ByNameAndShapeWhoeverWroteThem) {
  const WantedModel wanted = {{},
                              {{"conv1/weights", Shape{3, 3, 1, 4}, WeightUse::kFilter},
                               {"conv1/biases", Shape{4}},
                               {"stage/0/dense/weights", Shape{4, 2}, WeightUse::kMatrix},
                               {"norm/gamma", Shape{4}},
                               {"head/weights", Shape{4, 2}, WeightUse::kMatrix}}};
  FoundWeights weights = foundOf({{"conv1.weight", Shape{3, 3, 1, 4}},
                                  {"conv1.bias", Shape{4}},
                                  {"stage/0/dense/kernel", Shape{4, 2}},
                                  {"norm/gamma", Shape{4}},
                                  {"head/weights", Shape{4, 3}},
                                  {"conv1/biases", Shape{4}},
                                  {"bias", Shape{4}}});
  weights.skipped = {{"count", "its type is I64"}};
  const WeightMatch match = matchWeights(wanted, weights);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(match.found[i]) << i;
    EXPECT_EQ(match.found[i]->from, weights.tensors[i].name);
    EXPECT_EQ(match.found[i]->value.shape(), wanted.variables[i].shape);
  }
  EXPECT_FALSE(match.found[4]);
  EXPECT_THAT(match.unused,
              ElementsAre("count: its type is I64", "head/weights [4, 3]: head/weights is [4, 2]",
                          "conv1/biases [4]: conv1/biases is conv1.bias",
                          "bias [4]: the model has no such variable"));
}

// PyTorch's DataParallel and the user's rules.
TEST(WeightMatch, ByANameWithoutModuleOrTheNameThatItWasGiven) {
  const WantedModel wanted = {
      {}, {{"fc/biases", Shape{2}}, {"module/fc/biases", Shape{3}}, {"head/biases", Shape{4}}}};
  FoundWeights weights = foundOf({{"module.fc.bias", Shape{3}}, {"last.bias", Shape{4}}});
  weights.tensors[1].renamed = "module.head.bias";
  WeightMatch match = matchWeights(wanted, weights);
  EXPECT_FALSE(match.found[0]);
  ASSERT_TRUE(match.found[1] && match.found[2]);
  EXPECT_EQ(match.found[2]->from, "last.bias");
  weights = foundOf({{"module.fc.bias", Shape{2}}, {"last.bias", Shape{4}}});
  weights.tensors[1].renamed = "end.bias";
  weights.excluded = {{"x", "its name doesn't begin with net"}};
  match = matchWeights({{}, {wanted.variables[0]}}, weights);
  ASSERT_TRUE(match.found[0]);
  EXPECT_EQ(match.found[0]->from, "module.fc.bias");
  EXPECT_THAT(match.unused,
              ElementsAre("x: its name doesn't begin with net",
                          "last.bias, read as end.bias [4]: the model has no such variable"));
}

// Its variable would keep initial values, beside others that are imported.
TEST(WeightMatch, ATensorThatIsWantedAndCanNotBeReadIsAnError) {
  const WantedModel wanted = {{}, {{"fc/weights", Shape{4, 2}, WeightUse::kMatrix}}};
  FoundWeights weights;
  weights.skipped = {{"fc.weight", "its type is I8"}};
  try {
    matchWeights(wanted, weights);
    ADD_FAILURE() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_EQ(error.message(),
              "fc.weight, which is fc/weights of the model, can't be read: its type is I8. Nothing "
              "was imported");
  }
}

TEST(WeightMatch, NormsHaveTheNamesOfBothWorlds) {
  const WantedModel wanted = {{},
                              {{"bn/gamma", Shape{2}},
                               {"bn/beta", Shape{2}},
                               {"bn/moving_mean", Shape{2}},
                               {"bn/moving_variance", Shape{2}}}};
  const WeightMatch match = matchWeights(wanted, foundOf({{"bn.weight", Shape{2}},
                                                          {"bn.bias", Shape{2}},
                                                          {"bn.running_mean", Shape{2}},
                                                          {"bn.running_var", Shape{2}}},
                                                         WeightLayout::kPyTorch));
  for (const auto& each : match.found) EXPECT_THAT(valuesOf(each), ElementsAre(1, 2));
  EXPECT_THAT(match.unused, IsEmpty());
}

TEST(WeightMatch, TheShortcutOfAResidualLayerIsPyTorchsDownsample) {
  const WantedModel wanted = {{}, {{"layer1/0/shortcut/1/gamma", Shape{2}}}};
  EXPECT_TRUE(matchWeights(wanted, foundOf({{"layer1.0.downsample.1.weight", Shape{2}}})).found[0]);
}

TEST(WeightMatch, ADepthwiseFilterMayHaveItsChannelsInOneDimension) {
  WantedWeights wanted = {"d/weights", Shape{3, 3, 4, 2}, WeightUse::kFilter, {}, true};
  EXPECT_TRUE(matchOf(wanted, Shape{3, 3, 1, 8}, WeightLayout::kDtf).found[0]);
  EXPECT_FALSE(matchOf(wanted, Shape{3, 3, 2, 4}, WeightLayout::kDtf).found[0]);
  wanted.is_depthwise = false;  // as many numbers, but for another convolution
  EXPECT_FALSE(matchOf(wanted, Shape{3, 3, 1, 8}, WeightLayout::kDtf).found[0]);
}

// A square matrix fits in both ways: the stated layout decides.
TEST(WeightMatch, AMatrixOfPyTorchIsTransposed) {
  const WantedWeights wanted = {"fc/weights", Shape{2, 2}, WeightUse::kMatrix};
  const WeightMatch match = matchOf(wanted, Shape{2, 2}, WeightLayout::kPyTorch);
  EXPECT_THAT(valuesOf(match.found[0]), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(match.found[0]->from, "fc/weights, transposed");
  EXPECT_THAT(valuesOf(matchOf(wanted, Shape{2, 2}, WeightLayout::kDtf).found[0]),
              ElementsAre(1, 2, 3, 4));
  const WantedWeights wide = {"fc/weights", Shape{2, 3}, WeightUse::kMatrix};
  EXPECT_THAT(valuesOf(matchOf(wide, Shape{3, 2}, WeightLayout::kPyTorch).found[0]),
              ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT(matchOf(wide, Shape{2, 3}, WeightLayout::kPyTorch).unused,
              ElementsAre("fc/weights [2, 3]: fc/weights is [2, 3], to PyTorch [3, 2]"));
}

TEST(WeightMatch, AFilterOfPyTorchIsTurned) {
  // [filters 2, channels 2, height 1, width 2] to [1, 2, 2, 2].
  const WantedWeights wanted = {"c/weights", Shape{1, 2, 2, 2}, WeightUse::kFilter};
  const WeightMatch match = matchOf(wanted, Shape{2, 2, 1, 2}, WeightLayout::kPyTorch);
  EXPECT_THAT(valuesOf(match.found[0]), ElementsAre(1, 5, 3, 7, 2, 6, 4, 8));
  EXPECT_EQ(match.found[0]->from, "c/weights, turned to channels last");
  // Filter 2 * channel + k is the k-th one of the channel.
  const WantedWeights deep = {"d/weights", Shape{1, 2, 2, 2}, WeightUse::kFilter, {}, true};
  EXPECT_THAT(valuesOf(matchOf(deep, Shape{4, 1, 1, 2}, WeightLayout::kPyTorch).found[0]),
              ElementsAre(1, 3, 5, 7, 2, 4, 6, 8));
  EXPECT_FALSE(matchOf(wanted, Shape{2, 4}, WeightLayout::kPyTorch).found[0]);
}

TEST(WeightMatch, ATableOfPyTorchLiesAsOurs) {
  const WantedWeights wanted = {"e/embeddings", Shape{2, 2}, WeightUse::kTable};
  EXPECT_THAT(valuesOf(matchOf(wanted, Shape{2, 2}, WeightLayout::kPyTorch).found[0]),
              ElementsAre(1, 2, 3, 4));
  const WantedWeights other = {"o/weights", Shape{2, 2}, WeightUse::kOther};
  EXPECT_FALSE(matchOf(other, Shape{2, 2}, WeightLayout::kPyTorch).found[0]);
}

TEST(WeightMatch, RowsOfAFlattenedImageAreMoved) {
  const WantedWeights wanted = {"fc/weights", Shape{4, 1}, WeightUse::kMatrix, kTwoByTwo};
  const WeightMatch match = matchOf(wanted, Shape{1, 4}, WeightLayout::kPyTorch);
  EXPECT_THAT(valuesOf(match.found[0]), ElementsAre(1, 3, 2, 4));
  EXPECT_EQ(match.found[0]->from, "fc/weights, transposed, its rows from channels first to last");
  EXPECT_THAT(valuesOf(matchOf(wanted, Shape{4, 1}, WeightLayout::kChannelRows).found[0]),
              ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(valuesOf(matchOf(wanted, Shape{4, 1}, WeightLayout::kDtf).found[0]),
              ElementsAre(1, 2, 3, 4));
  const WantedWeights gamma = {"bn/gamma", Shape{4}, WeightUse::kVector, kTwoByTwo};
  EXPECT_THAT(valuesOf(matchOf(gamma, Shape{4}, WeightLayout::kPyTorch).found[0]),
              ElementsAre(1, 3, 2, 4));
}

TEST(WeightMatch, RowsOfTheInputGoAsItsSizesSay) {
  const WantedModel model = {{1, 2, 3},
                             {{"fc/weights",
                               Shape{6, 1},
                               WeightUse::kMatrix,
                               {.known = true, .channels_first = {0, 2, 4, 1, 3, 5}}}}};
  FoundWeights weights = foundOf({{"fc.weight", Shape{6, 1}}}, WeightLayout::kInputRows);
  weights.input = {3, 1, 2};
  EXPECT_THAT(valuesOf(matchWeights(model, weights).found[0]), ElementsAre(1, 3, 5, 2, 4, 6));
  weights.input = {1, 2, 3};
  EXPECT_THAT(valuesOf(matchWeights(model, weights).found[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  weights.input = {2, 1, 3};
  EXPECT_THROW(matchWeights(model, weights), Error);
}

TEST(WeightMatch, WhatCannotBeKnownIsRefusedByName) {
  const WantedWeights flat = {"fc/weights", Shape{4, 1}, WeightUse::kMatrix, kTwoByTwo};
  const WantedWeights lost = {
      "fc/weights", Shape{4, 1}, WeightUse::kMatrix, {.known = false, .channels_first = {}}};
  const WantedWeights plain = {"fc/weights", Shape{4, 1}, WeightUse::kMatrix};
  for (const auto& [wanted, layout] :
       {std::pair{flat, WeightLayout::kUnknownRows}, {lost, WeightLayout::kChannelRows}}) {
    try {
      matchOf(wanted, Shape{4, 1}, layout);
      ADD_FAILURE() << "must throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      EXPECT_THAT(error.message(),
                  HasSubstr("fc/weights [4, 1]: in which order its rows go can't be known"));
    }
  }
  EXPECT_TRUE(matchOf(lost, Shape{4, 1}, WeightLayout::kDtf).found[0]);
  EXPECT_TRUE(matchOf(plain, Shape{4, 1}, WeightLayout::kUnknownRows).found[0]);
  EXPECT_FALSE(matchOf(plain, Shape{4, 1}, WeightLayout::kUnknown).found[0]);
}

}  // namespace
}  // namespace dtf::model_files
