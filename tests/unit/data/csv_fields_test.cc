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
  EXPECT_EQ(className("+1.00"), "1");
  EXPECT_EQ(className("-0.0"), "0");
  EXPECT_EQ(className("10,0", ','), "10");
  EXPECT_EQ(className("90071992547409931.0"), "90071992547409931");
}

TEST(CsvFields, ACodeThatLooksLikeANumberIsAClassOfItsOwn) {
  for (const char* code : {"1e3", "1E3", "007", "007.0", "00", "-01", "1.0e2", "1.50", "1,0", ".0",
                           "-", "+", "--1", "+-1", "0x10", "1.0.0", "1 000", ""})
    EXPECT_EQ(className(code), code);
  EXPECT_EQ(className("1.0", ','), "1.0");
}

}  // namespace
}  // namespace dtf::data
