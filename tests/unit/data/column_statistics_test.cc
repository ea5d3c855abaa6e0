#include "common/data/column_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/base/error.h"

namespace dtf::data {
namespace {

using cluster::NumericColumn;
using cluster::PreparedColumn;
using Fill = NumericColumn::Fill;

PreparedColumn learned(const NumericColumn& settings, const std::vector<float>& values,
                       size_t median_max = 1000) {
  ColumnStatistics statistics(settings, median_max);
  for (const float value : values) statistics.add(value);
  return statistics.learned();
}

const NumericColumn kStandardized{"x", Fill::kNone, 0, false, false, true};

TEST(ColumnStatistics, LearnsMeanAndDeviationOfAllValues) {
  const PreparedColumn column = learned(kStandardized, {2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(column.mean, 5);
  EXPECT_EQ(column.stddev, 2) << "as NumPy's std and Keras's Normalization";
  const PreparedColumn far = learned(kStandardized, {1e9F + 64, 1e9F - 64});
  EXPECT_EQ(far.stddev, 64) << "small differences of large numbers";
}

TEST(ColumnStatistics, StandardizesTheLogarithms) {
  const NumericColumn settings{"x", Fill::kMean, 0, false, true, true};
  const PreparedColumn column = learned(settings, {0, static_cast<float>(std::exp(2.0) - 1)});
  EXPECT_FLOAT_EQ(static_cast<float>(column.mean), 1);
  EXPECT_FLOAT_EQ(static_cast<float>(column.stddev), 1);
  EXPECT_FLOAT_EQ(static_cast<float>(column.fill), static_cast<float>((std::exp(2.0) - 1) / 2))
      << "a missing value is filled before the logarithm";
}

TEST(ColumnStatistics, TheMedianIsExactUpToANumberOfValues) {
  const NumericColumn settings{"x", Fill::kMedian};
  EXPECT_EQ(learned(settings, {5, 1, 9}).fill, 5);
  EXPECT_EQ(learned(settings, {1, 2, 10, 20}).fill, 6);
  std::vector<float> sorted;
  for (int i = 0; i <= 100'000; ++i) sorted.push_back(static_cast<float>(i));
  const double sampled = learned(settings, sorted, 10'000).fill;
  EXPECT_NEAR(sampled, 50'000, 2'000) << "of a sample, whatever the order";
  EXPECT_EQ(learned(settings, sorted, 10'000).fill, sampled) << "the same each time";
}

TEST(ColumnStatistics, AConstantColumnIsDividedByOne) {
  const PreparedColumn column = learned(kStandardized, {3, 3, 3});
  EXPECT_EQ(column.mean, 3);
  EXPECT_EQ(column.stddev, 1);
}

TEST(ColumnStatistics, NothingIsLearnedFromNothing) {
  EXPECT_THROW(learned(kStandardized, {}), Error);
  EXPECT_THROW(learned({"x", Fill::kMedian}, {}), Error);
}

TEST(ColumnStatistics, NumbersAreRoundedToFloat32) {
  const double mean = learned(kStandardized, {0, 0, 1}).mean;
  EXPECT_EQ(mean, static_cast<double>(static_cast<float>(mean)));
}

}  // namespace
}  // namespace dtf::data
