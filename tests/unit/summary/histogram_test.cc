#include "common/summary/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/unit/summary/proto_reader.h"

namespace dtf::summary {

TEST(Histogram, LimitsAreTensorFlows) {
  const std::vector<double>& limits = bucketLimits();
  ASSERT_EQ(limits.size(), 2 * 775u + 1);  // 774 powers below 1e20 and the largest double, a side
  EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
  EXPECT_EQ(limits.front(), -std::numeric_limits<double>::max());
  EXPECT_EQ(limits.back(), std::numeric_limits<double>::max());
  EXPECT_EQ(limits[775], 0);
  EXPECT_EQ(limits[776], 1e-12);
  EXPECT_EQ(limits[777], 1e-12 * 1.1);
  EXPECT_EQ(limits[774], -1e-12);
  EXPECT_LT(limits[limits.size() - 2], 1e20);
  for (size_t i = 0; i < limits.size(); ++i)
    EXPECT_EQ(limits[i], -limits[limits.size() - 1 - i]) << i;
}

TEST(Histogram, SumsWhatItWasGiven) {
  Histogram histogram;
  const float values[] = {3, -1, 0.5f};
  histogram.add(values);
  EXPECT_EQ(histogram.min(), -1);
  EXPECT_EQ(histogram.max(), 3);
  EXPECT_EQ(histogram.sum(), 2.5);
  EXPECT_EQ(histogram.sumOfSquares(), 10.25);
  EXPECT_EQ(histogram.count(), 3u);
}

TEST(Histogram, InfinitiesAndNaNsAreInNoBucket) {
  Histogram histogram;
  const float infinity = std::numeric_limits<float>::infinity();
  const float values[] = {infinity, -infinity, std::nanf(""), 2};
  histogram.add(values);
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_EQ(histogram.sum(), 2);
}

TEST(Histogram, EachEncodedBucketCountsTheValuesBelowItsLimit) {
  constexpr uint32_t kSeed = 11;
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  std::vector<float> values(5000);
  for (float& value : values) value = std::exp(6 * normal(random)) * (random() % 2 == 0 ? 1 : -1);
  values[0] = 0;
  values[1] = std::numeric_limits<float>::max();
  Histogram histogram;
  histogram.add(values);
  const std::string encoded = histogram.encode();
  EXPECT_EQ(fieldOf(encoded, 3).number64(), 5000);
  const std::vector<double> limits = packedOf(encoded, 6);
  const std::vector<double> counts = packedOf(encoded, 7);
  ASSERT_EQ(limits.size(), counts.size());
  EXPECT_LT(limits.size(), bucketLimits().size());
  double below = 0;
  for (size_t i = 0; i < limits.size(); ++i) {
    below += counts[i];
    const auto expected =
        std::count_if(values.begin(), values.end(), [&](float v) { return v < limits[i]; });
    ASSERT_EQ(below, static_cast<double>(expected)) << "limit " << limits[i] << " seed " << kSeed;
  }
  EXPECT_EQ(below, 5000);
}

TEST(Histogram, ARunOfEmptyBucketsIsOne) {
  Histogram histogram;
  const float values[] = {1, 1, 1};
  histogram.add(values);
  const std::string encoded = histogram.encode();
  const std::vector<double> counts = packedOf(encoded, 7);
  EXPECT_EQ(counts, (std::vector<double>{0, 3}));
  const std::vector<double> limits = packedOf(encoded, 6);
  EXPECT_LE(limits[0], 1);
  EXPECT_GT(limits[1], 1);
}

TEST(Histogram, AnEmptyOneHasABucket) {
  const std::string encoded = Histogram().encode();
  EXPECT_EQ(packedOf(encoded, 6).size(), 1u);
  EXPECT_EQ(packedOf(encoded, 7), std::vector<double>{0});
}

}  // namespace dtf::summary
