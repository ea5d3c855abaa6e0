#include "common/data/csv_fields.h"

#include <gtest/gtest.h>

namespace dtf::data {
namespace {

TEST(CsvFields, NumbersHaveAPointOrAComma) {
  EXPECT_EQ(floatOf(" 1.5 "), 1.5F);
  EXPECT_EQ(floatOf("1e-400"), 0.0F);
  EXPECT_EQ(floatOf("-1,5", ','), -1.5F);
  EXPECT_EQ(floatOf("3", ','), 3.0F);
  for (const char* none : {"1,5", "", "inf", "nan", "1e39", "word"}) EXPECT_FALSE(floatOf(none));
  for (const char* none : {"1.5", "1.234,5", "1,2,3"})
    EXPECT_FALSE(floatOf(none, ',')) << "a point between thousands may be anything: " << none;
}

TEST(CsvFields, BooleansAreNumbers) {
  EXPECT_EQ(floatOf("True"), 1.0F);
  EXPECT_EQ(floatOf(" no "), 0.0F);
  EXPECT_EQ(booleanOf("YES"), 1);
  EXPECT_EQ(booleanOf("false"), 0);
  EXPECT_FALSE(booleanOf("t"));
  EXPECT_FALSE(booleanOf(""));
}

TEST(CsvFields, WholeNumbersMayHaveDecimalsOfZero) {
  EXPECT_EQ(indexOf("3.0"), 3);
  EXPECT_EQ(indexOf("3,0", ','), 3);
  EXPECT_FALSE(indexOf("3.5"));
  EXPECT_FALSE(indexOf("-1"));
  EXPECT_FALSE(indexOf("2147483648"));
}

TEST(CsvFields, AClassHasOneName) {
  EXPECT_EQ(className(" 1.0 "), "1");
  EXPECT_EQ(className("-1"), "-1");
  EXPECT_EQ(className("1.5"), "1.5");
  EXPECT_EQ(className(" New York "), "New York");
}

}  // namespace
}  // namespace dtf::data
