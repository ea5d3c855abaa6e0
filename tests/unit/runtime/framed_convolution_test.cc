#include "common/runtime/framed_convolution.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/repetitions.h"
#include "tests/unit/runtime/convolution_runner.h"

namespace dtf::runtime {
namespace {

using testing::RandomFloats;

struct FramedResults {
  std::vector<float> y, dfilter;
  bool operator==(const FramedResults&) const = default;
};

FramedResults results(Isa isa, const Convolution& c, const ConvolutionWay& way) {
  RandomFloats x(c.imageElements()), filter(c.filterElements()), dy(c.outElements());
  RandomFloats y(c.outElements()), dfilter(c.filterElements());
  Buffer workspace(way.workspaceBytes(isa, c));
  auto* const bytes = reinterpret_cast<std::byte*>(workspace.data());
  way.forward(isa, c, x.data(), filter.data(), y.data(), bytes);
  way.backpropFilter(isa, c, x.data(), dy.data(), dfilter.data(), bytes);
  return {y.values(), dfilter.values()};
}

const ConvolutionWay& kGathered = convolutionWays()[0];
const ConvolutionWay& kFramed = convolutionWays()[2];

Convolution randomFramed(Random& random) {
  const auto upTo = [&random](uint64_t most) {
    return static_cast<int64_t>(random.below(most + 1));
  };
  const auto axis = [&] {
    return graph::WindowAxis{1 + upTo(7), 1 + upTo(2), 1, upTo(4), upTo(4)};
  };
  const graph::Window window = {axis(), axis()};
  const int64_t height = 8 + upTo(9), width = 8 + upTo(20),
                channels = 1 + upTo(random.below(2) == 0 ? 3 : 20);
  const Shape y = {1 + upTo(2), window.height.positions(height), window.width.positions(width),
                   1 + upTo(80)};
  return Convolution::of({y.dim(0), height, width, channels},
                         {window.height.size, window.width.size, channels, y.dim(3)}, y,
                         convolutionAttributes(window, 1));
}

// Forward, both sum in the same order. The device suite compares gathered convolutions with a
// reference in double precision.
TEST(FramedConvolution, ComputesWhatAGatheredConvolutionDoes) {
  for (const Isa isa : supportedIsas()) {
    for (uint64_t seed = 0; seed < dtf::testing::repetitions(60u); ++seed) {
      SCOPED_TRACE(std::string(isaName(isa)) + ", seed " + std::to_string(seed));
      Random random(seed);
      const Convolution c = randomFramed(random);
      ASSERT_TRUE(framedConvolutionFits(c));
      const FramedResults actual = results(isa, c, kFramed), expected = results(isa, c, kGathered);
      ASSERT_EQ(actual.y, expected.y);
      for (size_t i = 0; i < actual.dfilter.size(); ++i) {
        ASSERT_NEAR(actual.dfilter[i], expected.dfilter[i], 5e-5) << i;
      }
    }
  }
}

TEST(FramedConvolution, HasTheSameBitsOnEverySetWithFusedMultiplyAdd) {
  if (bestIsa() < Isa::kV4) GTEST_SKIP() << "one such set on this machine";
  for (uint64_t seed = 100; seed < 110; ++seed) {
    Random random(seed);
    const Convolution c = randomFramed(random);
    EXPECT_EQ(results(Isa::kV3, c, kFramed), results(Isa::kV4, c, kFramed)) << seed;
  }
}

TEST(FramedConvolution, TakesDenseWindowsOverAllChannels) {
  EXPECT_TRUE(framedConvolutionFits(testing::squareConvolution(1, 8, 4, 7, 5)));
  EXPECT_FALSE(framedConvolutionFits(testing::squareConvolution(1, 8, 4, 3, 6, 2)));
  EXPECT_FALSE(framedConvolutionFits(testing::squareConvolution(0, 8, 1, 3, 6)));
}

}  // namespace
}  // namespace dtf::runtime
