#include "common/runtime/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/repetitions.h"
#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::convolutionResults;
using testing::ConvolutionResults;

const ConvolutionWay& kWinograd = convolutionWays()[1];
using testing::squareConvolution;

// Relative to the root mean square of the expected values.
void expectClose(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  double squares = 0;
  for (const float x : expected) squares += x * x;
  const double rms = std::sqrt(squares / static_cast<double>(expected.size()));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-4 * (rms + 1e-3)) << what << ", element " << i;
  }
}

void expectLikeGathered(Isa isa, const Convolution& c) {
  ASSERT_TRUE(winogradFits(c));
  const ConvolutionResults actual = convolutionResults(isa, c, kWinograd);
  const ConvolutionResults expected = convolutionResults(isa, c);
  expectClose(actual.y, expected.y, "y");
  expectClose(actual.dx, expected.dx, "dx");
  expectClose(actual.dfilter, expected.dfilter, "dfilter");
}

// The device suite compares gathered convolutions with a reference in double precision.
TEST(Winograd, ComputesWhatAGatheredConvolutionDoes) {
  for (const Isa isa : supportedIsas()) {
    for (uint64_t seed = 0; seed < dtf::testing::repetitions(40u); ++seed) {
      SCOPED_TRACE(std::string(isaName(isa)) + ", seed " + std::to_string(seed));
      Random random(seed);
      const auto upTo = [&random](uint64_t most) {
        return static_cast<int64_t>(random.below(most + 1));
      };
      const int64_t window = random.below(2) == 0 ? 3 : 5;
      const auto axis = [&] { return graph::WindowAxis{window, 1, 1, upTo(6), upTo(6)}; };
      const graph::Window where = {axis(), axis()};
      const int64_t height = 5 + upTo(9), width = 5 + upTo(9);
      const int64_t channels = 16 + 16 * upTo(2), out_channels = 16 + 16 * upTo(2);
      const Shape y = {1 + upTo(2), where.height.positions(height), where.width.positions(width),
                       out_channels};
      expectLikeGathered(isa, Convolution::of({y.dim(0), height, width, channels},
                                              {window, window, channels, out_channels}, y,
                                              convolutionAttributes(where, 1)));
    }
  }
}

TEST(Winograd, ComputesSeveralBlocksOfTiles) {
  for (const Isa isa : supportedIsas()) {
    expectLikeGathered(isa, squareConvolution(5, 28, 64, 3, 64));
    expectLikeGathered(isa, squareConvolution(7, 14, 32, 5, 64));
  }
}

TEST(Winograd, HasTheSameBitsOnEverySetWithFusedMultiplyAdd) {
  if (bestIsa() < Isa::kV4) GTEST_SKIP() << "one such set on this machine";
  for (const Convolution& c :
       {squareConvolution(2, 17, 32, 3, 48), squareConvolution(2, 11, 16, 5, 32)}) {
    EXPECT_EQ(convolutionResults(Isa::kV3, c, kWinograd),
              convolutionResults(Isa::kV4, c, kWinograd));
  }
}

TEST(Winograd, TakesDenseSquareWindowsOfThreeOrFive) {
  EXPECT_TRUE(winogradFits(squareConvolution(1, 8, 16, 3, 32)));
  EXPECT_TRUE(winogradFits(squareConvolution(1, 8, 16, 5, 32)));
  EXPECT_FALSE(winogradFits(squareConvolution(1, 8, 16, 1, 32)));
  EXPECT_FALSE(winogradFits(squareConvolution(1, 8, 16, 7, 32)));
  EXPECT_FALSE(winogradFits(squareConvolution(1, 8, 17, 3, 32)));
  EXPECT_FALSE(winogradFits(squareConvolution(1, 8, 16, 3, 24)));
  EXPECT_FALSE(winogradFits(squareConvolution(1, 8, 32, 3, 32, 2)));
  EXPECT_FALSE(winogradFits(squareConvolution(0, 8, 16, 3, 32)));
}

}  // namespace
}  // namespace dtf::runtime
