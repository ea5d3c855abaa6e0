#include "common/model_files/weight_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtf::model_files {
namespace {

using ::testing::ElementsAre;

FoundWeights foundOf(const std::vector<std::pair<std::string, Shape>>& tensors) {
  FoundWeights found;
  for (const auto& [name, shape] : tensors)
    found.tensors.push_back({name, Tensor(DType::kFloat32, shape)});
  return found;
}

TEST(WeightMatch, ByNameAndShapeWhoeverWroteThem) {
  const std::vector<WantedWeights> wanted = {{"conv1/weights", Shape{3, 3, 1, 4}},
                                             {"conv1/biases", Shape{4}},
                                             {"stage/0/dense/weights", Shape{4, 2}},
                                             {"norm/gamma", Shape{4}},
                                             {"head/weights", Shape{4, 2}}};
  FoundWeights weights = foundOf({{"conv1.weight", Shape{3, 3, 1, 4}},
                                  {"conv1.bias", Shape{4}},
                                  {"stage/0/dense/kernel", Shape{4, 2}},
                                  {"norm/gamma", Shape{4}},
                                  {"head/weights", Shape{4, 3}},
                                  {"conv1/biases", Shape{4}},
                                  {"bias", Shape{4}}});
  weights.skipped = {"count: its type is I64"};
  const WeightMatch match = matchWeights(wanted, weights);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(match.found[i], &weights.tensors[i]) << i;
  EXPECT_EQ(match.found[4], nullptr);
  EXPECT_THAT(match.unused,
              ElementsAre("count: its type is I64", "head/weights [4, 3]: head/weights is [4, 2]",
                          "conv1/biases [4]: conv1/biases is conv1.bias",
                          "bias [4]: the model has no such variable"));
}

TEST(WeightMatch, ADepthwiseFilterMayHaveItsChannelsInOneDimension) {
  const std::vector<WantedWeights> wanted = {{"d/weights", Shape{3, 3, 4, 2}}};
  const FoundWeights grouped = foundOf({{"d/weights", Shape{3, 3, 1, 8}}});
  EXPECT_NE(matchWeights(wanted, grouped).found[0], nullptr);
  const FoundWeights turned = foundOf({{"d/weights", Shape{3, 3, 2, 4}}});
  EXPECT_EQ(matchWeights(wanted, turned).found[0], nullptr);
}

}  // namespace
}  // namespace dtf::model_files
