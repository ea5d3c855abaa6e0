#include "common/runtime/depthwise_convolution.h"

#include <gtest/gtest.h>

#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::squareConvolution;

constexpr ConvolutionPass kDepthwisePasses[] = {
    ConvolutionPass::kForward, ConvolutionPass::kBackpropInput, ConvolutionPass::kBackpropFilter};

const ConvolutionWay& wayOf(std::string_view name) {
  for (const ConvolutionWay& way : convolutionWays())
    if (way.name == name) return way;
  ADD_FAILURE() << name;
  return convolutionWays()[0];
}

// 'SAME' padding, separate for height and width.
Convolution depthwise(int64_t batch, const Shape& image, const graph::Window& window) {
  const int64_t height = image.dim(0), width = image.dim(1), channels = image.dim(2);
  const graph::Window padded = graph::paddedSame(window, height, width);
  return Convolution::of(
      {batch, height, width, channels}, {window.height.size, window.width.size, 1, channels},
      {batch, padded.height.positions(height), padded.width.positions(width), channels},
      convolutionAttributes(padded, channels));
}

TEST(DepthwiseConvolution, FitsWhereEachChannelIsAloneWithItsFilter) {
  EXPECT_TRUE(depthwiseConvolutionFits(squareConvolution(2, 9, 20, 3, 20, 20)));
  EXPECT_FALSE(depthwiseConvolutionFits(squareConvolution(2, 9, 20, 3, 40, 20))) << "two filters";
  EXPECT_FALSE(depthwiseConvolutionFits(squareConvolution(2, 9, 20, 3, 20, 10)));
  EXPECT_FALSE(depthwiseConvolutionFits(squareConvolution(2, 9, 20, 3, 20)));
  const Convolution c = squareConvolution(2, 9, 20, 3, 20, 20);
  for (const ConvolutionPass pass : kDepthwisePasses)
    EXPECT_EQ(fastestWay(pass, c, true).name, "depthwise");
}

// Both sum in the same order, for any window: wider than the image, strided, dilated, uneven.
TEST(DepthwiseConvolution, HasTheBitsOfTheGatheredOne) {
  using graph::WindowAxis;
  const Convolution cases[] = {
      squareConvolution(3, 9, 70, 3, 70, 70),
      squareConvolution(2, 6, 5, 5, 5, 5),
      squareConvolution(1, 1, 16, 3, 16, 16),
      squareConvolution(2, 3, 33, 7, 33, 33),
      depthwise(2, {11, 8, 20}, {{.size = 3, .stride = 2}, {.size = 3, .stride = 2}}),
      depthwise(2, {9, 13, 130}, {{.size = 3, .dilation = 2}, {.size = 4, .dilation = 3}}),
      depthwise(2, {5, 12, 8}, {{.size = 1}, {.size = 6, .stride = 3}}),
  };
  for (const Isa isa : supportedIsas())
    for (const Convolution& c : cases)
      for (const ConvolutionPass pass : kDepthwisePasses)
        EXPECT_EQ(testing::passResult(isa, pass, c, wayOf("depthwise")),
                  testing::passResult(isa, pass, c, wayOf("gathered")))
            << isaName(isa) << " " << passName(pass) << " " << c.height << " x " << c.width << " x "
            << c.channels;
}

}  // namespace
}  // namespace dtf::runtime
