#include "common/runtime/timed_convolutions.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::squareConvolution;

TEST(TimedConvolutions, TheExpectedWayStaysUnlessAnotherIsClearlyFaster) {
  const std::span<const ConvolutionWay> ways = convolutionWays();
  const auto chosen = [&](double first, double second, double third) {
    const TimedWay timed[] = {{&ways[0], first}, {&ways[1], second}, {&ways[2], third}};
    return fastestOf(timed, ways[1]).name;
  };
  EXPECT_EQ(chosen(1.00, 1.00, 1.00), ways[1].name);
  EXPECT_EQ(chosen(0.96, 1.00, 0.97), ways[1].name) << "by less than kFasterBy";
  EXPECT_EQ(chosen(0.90, 1.00, 0.97), ways[0].name);
  EXPECT_EQ(chosen(0.90, 1.00, 0.89), ways[2].name);
  EXPECT_EQ(chosen(0.90, 0.50, 0.89), ways[1].name);
}

TEST(TimedConvolutions, AKeyTellsWhateverChangesTheWorkOfAnImage) {
  std::set<std::string> keys;
  const auto add = [&keys](ConvolutionPass pass, const Convolution& c) {
    return keys.insert(convolutionKey(pass, c)).second;
  };
  const ConvolutionPass forward = ConvolutionPass::kForward;
  EXPECT_TRUE(add(forward, squareConvolution(8, 14, 32, 5, 64)));
  EXPECT_FALSE(add(forward, squareConvolution(1, 14, 32, 5, 64))) << "fewer images";
  EXPECT_TRUE(add(ConvolutionPass::kBackpropInput, squareConvolution(8, 14, 32, 5, 64)));
  EXPECT_TRUE(add(forward, squareConvolution(8, 15, 32, 5, 64)));
  EXPECT_TRUE(add(forward, squareConvolution(8, 14, 16, 5, 64)));
  EXPECT_TRUE(add(forward, squareConvolution(8, 14, 32, 3, 64)));
  EXPECT_TRUE(add(forward, squareConvolution(8, 14, 32, 5, 32)));
  EXPECT_TRUE(add(forward, squareConvolution(8, 14, 32, 5, 64, 2)));
  graph::Window window = {{.size = 5, .stride = 2}, {.size = 5, .stride = 2}};
  EXPECT_TRUE(add(forward, Convolution::of({8, 14, 14, 32}, {5, 5, 32, 64}, {8, 5, 5, 64},
                                           convolutionAttributes(window, 1))));
  EXPECT_EQ(convolutionKey(forward, squareConvolution(8, 14, 32, 5, 64)),
            "forward 14x14x32 5x5 s1x1 p2,2,2,2 d1x1 g1 -> 64");
}

TEST(TimedConvolutions, TheFastestIsOneThatFits) {
  for (const ConvolutionPass pass : {ConvolutionPass::kForward, ConvolutionPass::kBackpropInput,
                                     ConvolutionPass::kBackpropFilter}) {
    const Convolution c = squareConvolution(1, 6, 16, 3, 16);
    EXPECT_TRUE(fastestByTiming(pass, c, bestIsa(), true).fits(pass, c));
    EXPECT_FALSE(fastestByTiming(pass, c, bestIsa(), false).rounds_otherwise);
    const Convolution nothing = squareConvolution(0, 6, 16, 3, 16);
    EXPECT_TRUE(fastestByTiming(pass, nothing, bestIsa(), true).fits(pass, nothing));
  }
}

}  // namespace
}  // namespace dtf::runtime
