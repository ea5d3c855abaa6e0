#include "common/ps/gradient_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/ps/golden.h"

namespace dtf::ps {
namespace {

using golden::randomValues;

TEST(GradientMath, SumOfSquaresIsThatOfDoublePrecision) {
  for (const size_t n : {0u, 1u, 15u, 16u, 2048u, 2049u, 10'007u}) {
    const std::vector<float> values = randomValues(1, n, n);
    double expected = 0;
    for (const float value : values) expected += double{value} * double{value};
    EXPECT_NEAR(sumOfSquares(values), expected, 1e-12 * (1 + expected)) << n;
  }
}

TEST(GradientMath, ClipByValueBoundsBothSidesAndKeepsNans) {
  std::vector<float> values = {-3, -0.5f, 0, 0.5f, 3, std::numeric_limits<float>::quiet_NaN()};
  clipByValue(values.data(), 1, values.size());
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[1], -0.5f);
  EXPECT_EQ(values[4], 1);
  EXPECT_TRUE(std::isnan(values[5]));
}

TEST(GradientMath, FirstNonFiniteFindsInfinitiesAndNans) {
  std::vector<float> values = randomValues(5, 0, 10'000);
  values[17] = std::numeric_limits<float>::max();
  values[18] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(firstNonFinite(values), std::nullopt);
  values[9'999] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(firstNonFinite(values), 9'999u);
  values[2'048] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(firstNonFinite(values), 2'048u);
  EXPECT_EQ(firstNonFinite({}), std::nullopt);
}

}  // namespace
}  // namespace dtf::ps
