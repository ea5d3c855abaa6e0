#include "common/optimizer/gradient_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/unit/optimizer/golden.h"

namespace dtf::optimizer {
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

TEST(GradientMath, AMeanIsWeighedWhereWeightsDiffer) {
  const std::vector<float> a = {1, 2, 3}, b = {5, 6, 7}, c = {9, 10, 11};
  const std::vector<const float*> all = {a.data(), b.data(), c.data()};
  std::vector<float> mean(2);
  meanOf(all, std::vector<uint32_t>{2, 1, 1}, 1, 2, mean.data());
  EXPECT_EQ(mean, (std::vector<float>{5, 6}));
}

TEST(GradientMath, EqualWeightsLeaveTheBitsOfTheMean) {
  const std::vector<float> a = randomValues(1, 0, 100), b = randomValues(2, 0, 100),
                           c = randomValues(3, 0, 100);
  const std::vector<const float*> all = {a.data(), b.data(), c.data()};
  std::vector<float> plain(100), weighed(100);
  meanOf(all, {}, 0, 100, plain.data());
  meanOf(all, std::vector<uint32_t>{7, 7, 7}, 0, 100, weighed.data());
  EXPECT_EQ(plain, weighed);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(plain[i], (a[i] + b[i] + c[i]) / 3);
}

}  // namespace
}  // namespace dtf::optimizer
