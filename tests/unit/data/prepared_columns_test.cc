#include "common/data/prepared_columns.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/yaml/error_at.h"

namespace dtf::data {
namespace {

using cluster::NumericColumn;
using cluster::PreparedColumn;
using Fill = NumericColumn::Fill;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

TEST(PreparedColumns, AColumnHasItsOwnSettingsOrThoseOfTheStar) {
  const std::vector<PreparedColumn> columns = preparedColumns(
      {"age", "rooms", "income"}, {{"*", Fill::kMean}, {"income", Fill::kNone, 0, false, true}});
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].settings.column, "age");
  EXPECT_EQ(columns[0].settings.fill, Fill::kMean);
  EXPECT_EQ(columns[1].settings.fill, Fill::kMean);
  EXPECT_EQ(columns[2].settings.fill, Fill::kNone);
  EXPECT_TRUE(columns[2].settings.log1p);
  EXPECT_EQ(preparedWidth(columns), 3);
}

TEST(PreparedColumns, AnEntryForAColumnThatIsNoFeatureIsAMistakeAtItsPlace) {
  try {
    preparedColumns({"age"}, {{"aeg", Fill::kNone, 0, false, true, false, {"t.yaml", 7, 3}}});
    ADD_FAILURE();
  } catch (const yaml::ErrorAt& error) {
    EXPECT_EQ(error.mark().line, 7);
    EXPECT_NE(error.reason().find("'aeg' is none of them"), std::string::npos) << error.reason();
    EXPECT_NE(error.reason().find("did you mean 'age'?"), std::string::npos) << error.reason();
  }
}

TEST(PreparedColumns, FillComesBeforeLog1pBeforeStandardizeAndIndicatorsAreLast) {
  const std::vector<PreparedColumn> columns = {
      {{"a", Fill::kMean, 0, true}, 4},
      {{"b"}},
      {{"c", Fill::kValue, 0, true, true, true}, std::exp(2.0) - 1, 1, 2},
  };
  EXPECT_EQ(preparedWidth(columns), 5);
  std::vector<float> features;
  prepareRecord(columns, std::vector<float>{1, 2, 0}, features);
  prepareRecord(columns, std::vector<float>{kMissing, 2, kMissing}, features);
  EXPECT_EQ(features, (std::vector<float>{1, 2, -0.5F, 0, 0, 4, 2, 0.5F, 1, 1}));
}

}  // namespace
}  // namespace dtf::data
