#include <cmath>

#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::ElementsAre;

class CpuKernelsReduction : public KernelTest {};

TEST_F(CpuKernelsReduction, SumsAndMeansOverAnyDimensions) {
  const Output x = fed({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(computed(b_.sum(x, {0})), ElementsAre(5, 7, 9));
  EXPECT_THAT(computed(b_.sum(x, {2})), ElementsAre(6, 15));
  EXPECT_THAT(computed(b_.mean(x, {0, 2})), ElementsAre(3.5));
  EXPECT_THAT(computed(b_.mean(x)), ElementsAre(3.5));
  EXPECT_THAT(computed(b_.sum(fed({0, 2}, {}), {0})), ElementsAre(0, 0)) << "of nothing";
}

TEST_F(CpuKernelsReduction, TheLargestAndTheSmallestKeepNan) {
  const Output x = fed({2, 3}, {1, std::nan(""), 3, -4, 5, -6});
  const Values largest = computed(b_.max(x, {1})), smallest = computed(b_.min(x, {1}));
  EXPECT_TRUE(std::isnan(largest[0]) && std::isnan(smallest[0]));
  EXPECT_EQ(largest[1], 5);
  EXPECT_EQ(smallest[1], -6);
  EXPECT_THAT(computed(b_.max(fed({0}, {}))), ElementsAre(-INFINITY));
}

TEST_F(CpuKernelsReduction, OfEqualOnesTheFirstIsTheLargest) {
  const Output x = fed({2, 3}, {1, 3, 3, 9, -1, 9});
  EXPECT_THAT(computed(b_.argMax(x, 1)), ElementsAre(1, 0));
  EXPECT_THAT(computed(b_.argMax(x, 0)), ElementsAre(1, 0, 1));
}

TEST_F(CpuKernelsReduction, ATensorIsRepeatedToAShape) {
  const Output x = fed({2, 1}, {10, 20});
  EXPECT_THAT(computed(b_.broadcastTo(x, {2, 2, 2})), ElementsAre(10, 10, 20, 20, 10, 10, 20, 20));
}

}  // namespace
}  // namespace dtf::runtime::testing
