#include "common/graph/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;

// Figures from the documentation of 'SAME' and 'VALID' at TensorFlow's tf.nn.convolution.
TEST(WindowAxis, PadsAsTensorFlowDoes) {
  const auto same = [](WindowAxis axis, int64_t length) {
    const WindowAxis padded = paddedSame(axis, length);
    return std::array{padded.before, padded.after, padded.positions(length)};
  };
  EXPECT_THAT(same({.size = 3}, 28), ElementsAre(1, 1, 28));
  EXPECT_THAT(same({.size = 5}, 28), ElementsAre(2, 2, 28));
  EXPECT_THAT(same({.size = 2, .stride = 2}, 7), ElementsAre(0, 1, 4)) << "more behind than ahead";
  EXPECT_THAT(same({.size = 7, .stride = 2}, 224), ElementsAre(2, 3, 112));
  EXPECT_THAT(same({.size = 3, .stride = 2}, 13), ElementsAre(1, 1, 7));
  EXPECT_THAT(same({.size = 6, .stride = 5}, 13), ElementsAre(1, 2, 3));
  EXPECT_THAT(same({.size = 1, .stride = 3}, 7), ElementsAre(0, 0, 3));
  EXPECT_THAT(same({.size = 3, .dilation = 4}, 10), ElementsAre(4, 4, 10));
  EXPECT_EQ((WindowAxis{.size = 6, .stride = 5}.positions(13)), 2) << "'VALID'";
  EXPECT_EQ((WindowAxis{.size = 3, .dilation = 4}.positions(8)), 0);
}

TEST(Window, IsTheSameAfterItWasAttributes) {
  const Window convolution = {{3, 2, 4, 1, 5}, {7, 6, 8, 9, 10}};
  Attributes attributes = convolutionAttributes(convolution, 11);
  EXPECT_EQ(convolutionWindow(attributes, {3, 7, 1, 1}), convolution);
  EXPECT_EQ(std::get<int64_t>(attributes["groups"]), 11);
  const Window pooling = {{3, 2, 1, 1, 2}, {7, 6, 1, 4, 5}};
  EXPECT_EQ(poolingWindow(poolingAttributes(pooling)), pooling);
}

TEST(WindowDeathTest, OfAPoolingIsNotDilated) {
  EXPECT_DEATH(poolingAttributes({{.dilation = 2}, {}}), "dilation");
}

}  // namespace
}  // namespace dtf::graph
