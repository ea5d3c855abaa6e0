#include "tests/unit/runtime/kernel_fixture.h"

namespace dtf::runtime::testing {
namespace {

using graph::Output;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CpuKernelsArray : public KernelTest {};

TEST_F(CpuKernelsArray, PartsStandSideBySideAlongAnyDimension) {
  const Output a = fed({2, 1, 2}, {1, 2, 3, 4}), b = fed({2, 1, 2}, {5, 6, 7, 8});
  EXPECT_THAT(computed(b_.concat({a, b}, 0)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(computed(b_.concat({a, b}, 1)), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_THAT(computed(b_.concat({a, b}, 2)), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST_F(CpuKernelsArray, ASliceIsWhatAPadPutsBack) {
  const Output x = fed({2, 3}, {1, 2, 3, 4, 5, 6});
  const Output middle = b_.slice(x, {0, 1}, {2, 1});
  EXPECT_THAT(computed(middle), ElementsAre(2, 5));
  EXPECT_THAT(computed(b_.pad(middle, {0, 1}, {0, 1})), ElementsAre(0, 2, 0, 0, 5, 0));
}

TEST_F(CpuKernelsArray, TransposesAnyPermutation) {
  const Output x = fed({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(computed(b_.transpose(x, {2, 0, 1})), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(computed(b_.transpose(x, {0, 1, 2})), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(CpuKernelsArray, EqualIndicesAreSummed) {
  const Output dy = fed({3, 2}, {1, 2, 3, 4, 5, 6}), rows = fed({3}, {1, 0, 1}, DType::kInt64);
  EXPECT_THAT(computed(b_.unsortedSegmentSum(dy, rows, {3, 2})), ElementsAre(3, 4, 6, 8, 0, 0));
}

TEST_F(CpuKernelsArray, AnIndexThatNamesNoRowIsBadData) {
  const Output table = fed({2, 1}, {7, 8});
  EXPECT_THAT(computed(b_.gather(table, fed({2}, {1, 0}, DType::kInt32))), ElementsAre(8, 7));
  EXPECT_THAT(refusal(b_.gather(table, fed({2}, {0, 2}, DType::kInt32))),
              HasSubstr("index 1 is 2, it must be in [0, 2)"));
  EXPECT_THAT(refusal(b_.gather(table, fed({1}, {-1}, DType::kInt64))), HasSubstr("index 0 is -1"));
  EXPECT_THAT(refusal(b_.gather(table, fed({1}, {0.5}))), HasSubstr("no whole number"));
}

}  // namespace
}  // namespace dtf::runtime::testing
