#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

class CpuKernelsNorm : public KernelTest {};

auto near(double x) {
  return DoubleNear(x, 1e-5);
}

TEST_F(CpuKernelsNorm, ABatchIsNormalisedByChannel) {
  const Output x = fed({2, 2}, {1, 10, 3, 30}), scale = fed({2}, {2, 1}), offset = fed({2}, {5, 0});
  const auto batch = b_.batchNorm(x, scale, offset, 1e-12);
  EXPECT_THAT(computed(batch.y), ElementsAre(near(3), near(-1), near(7), near(1)));
  EXPECT_THAT(computed(batch.mean), ElementsAre(2, 20));
  EXPECT_THAT(computed(batch.variance), ElementsAre(near(2), near(200))) << "of rows - 1";
}

TEST_F(CpuKernelsNorm, AnInferenceReadsTheStatistics) {
  const Output x = fed({2, 1}, {1, 3}), two = fed({1}, {2}), zero = fed({1}, {0}),
               four = fed({1}, {4});
  EXPECT_THAT(computed(b_.batchNormInference(x, two, zero, two, four, 1e-12)),
              ElementsAre(near(-1), near(1)));
}

TEST_F(CpuKernelsNorm, ALayerIsNormalisedByRow) {
  const Output x = fed({2, 2}, {1, 10, 3, 30}), scale = fed({2}, {2, 1}), offset = fed({2}, {5, 0});
  const auto layer = b_.layerNorm(x, scale, offset, 1e-12);
  EXPECT_THAT(computed(layer.y), ElementsAre(near(3), near(1), near(3), near(1)));
  EXPECT_THAT(computed(layer.mean), ElementsAre(5.5, 16.5));
}

TEST_F(CpuKernelsNorm, ChannelsThatAreAllAlikeDivideByTheEpsilon) {
  const Output x = fed({3, 1}, {7, 7, 7}), one = fed({1}, {1}), zero = fed({1}, {0});
  const auto batch = b_.batchNorm(x, one, zero, 0.25);
  EXPECT_THAT(computed(batch.y), ElementsAre(0, 0, 0));
  EXPECT_THAT(computed(batch.inverse), ElementsAre(near(2)));
}

}  // namespace
}  // namespace dtf::runtime::testing
