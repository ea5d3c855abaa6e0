#include "common/tensor/shape.h"

#include <gtest/gtest.h>

#include <limits>

#include "common/base/error.h"

namespace dtf {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape({100, 784}).elements(), 78400);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({3, 0}).elements(), 0);
  EXPECT_EQ(Shape({28, 28, 1}).str(), "[28, 28, 1]");
}

TEST(Shape, RefusesNegativeAndOverflowingDimensions) {
  EXPECT_THROW(Shape({-1}), Error);
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW(Shape({2, Shape::kElementsMax}), Error);
  EXPECT_EQ(Shape({1, Shape::kElementsMax}).elements(), Shape::kElementsMax);
}

TEST(Shape, AZeroHidesNoDimensionThatOverflows) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(Shape({0, kMost}), Error);
  EXPECT_THROW(Shape({kMost, 0}), Error);
  EXPECT_THROW(Shape({int64_t{1} << 40, 0, int64_t{1} << 40}), Error);
  EXPECT_EQ(Shape({0, Shape::kElementsMax, 0}).elements(), 0);
}

}  // namespace dtf
