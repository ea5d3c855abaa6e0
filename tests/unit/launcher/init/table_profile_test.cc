#include "launcher/init/table_profile.h"

#include <gmock/gmock.h>

#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using Use = ColumnProfile::Use;
using ::testing::HasSubstr;

class TableProfileTest : public InitTest {
 protected:
  TableProfile profile(const std::string& text,
                       const std::optional<std::string>& target = std::nullopt) {
    folder_.write("t.csv", text);
    return profileTable(path("t.csv"), target);
  }
  std::string refused(ErrorCode code, const std::string& text,
                      const std::optional<std::string>& target = std::nullopt) {
    return mistakeOf(code, [&] { profile(text, target); });
  }
};

std::string records(const std::string& record, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += record;
  return text;
}

TEST_F(TableProfileTest, TheLastColumnIsLearntUnlessOneIsNamed) {
  const std::string text = "a,b,c\n" + records("1.5,x,u\n2.5,y,v\n", 10);
  const TableProfile last = profile(text);
  EXPECT_EQ(last.target, 2u);
  EXPECT_TRUE(last.target_was_guessed && last.learns_classes);
  EXPECT_EQ(last.rows, 20);
  EXPECT_EQ(last.columns[0].use, Use::kNumber);
  EXPECT_EQ(last.columns[1].use, Use::kWords);
  EXPECT_EQ(profile(text, "b").target, 1u);
  EXPECT_EQ(profile(text, "2").target, 1u);
  EXPECT_FALSE(profile(text, "a").learns_classes);
  EXPECT_EQ(profile("label,b\n" + records("x,1.5\ny,2\n", 9)).target, 0u);
}

TEST_F(TableProfileTest, DelimitersAndHeadersAreFound) {
  EXPECT_EQ(profile("a;b\n" + records("1.5;x, u\n2.7;y, v\n", 9)).delimiter, ';');
  EXPECT_EQ(profile("a\tb\n" + records("1\tx\n2\ty\n", 9)).delimiter, '\t');
  const TableProfile without = profile(records("5.1,3.5,setosa\n6.2,2.9,other\n", 9));
  EXPECT_FALSE(without.header);
  EXPECT_EQ(without.rows, 18);
  EXPECT_EQ(without.columns[2].name, "3");
  EXPECT_FALSE(profile(records("p,x\ne,y\n", 9)).header) << "words that come again below";
  EXPECT_TRUE(profile("edible,cap\n" + records("p,x\ne,y\n", 9)).header);
}

TEST_F(TableProfileTest, ARecordThatLacksANumberIsLeftOutOrTheColumnIs) {
  // Of 40 records one lacks a, and half lack b.
  const std::string text =
      "a,b,c,kind\n" + records("1.5,2,3,x\n2.5,,4,y\n", 19) + "NA,5,6,x\n3,7,1,y\n";
  const TableProfile found = profile(text);
  EXPECT_EQ(found.columns[0].use, Use::kNumber);
  EXPECT_EQ(found.columns[1].use, Use::kLeftOut);
  EXPECT_THAT(found.columns[1].why, HasSubstr("19 of 40 records lack it"));
  EXPECT_EQ(found.rows_left_out, 1);
}

TEST_F(TableProfileTest, RecordsWithoutATargetAndMalformedOnesAreCounted) {
  const TableProfile found = profile("a,kind\n" + records("1,x\n2,y\n", 10) + "3,\n4,y,z\n5,?\n");
  EXPECT_EQ(found.rows, 23);
  EXPECT_EQ(found.rows_left_out, 3);
  EXPECT_THAT(found.first_left_out, HasSubstr("t.csv:23:1: 3 fields, the others have 2"));
}

TEST_F(TableProfileTest, ColumnsOfOneNameAreLeftOut) {
  const TableProfile found = profile("a,b,a,kind\n" + records("1,2,3,x\n4,6,5,y\n", 9));
  EXPECT_EQ(found.columns[0].use, Use::kLeftOut);
  EXPECT_EQ(found.columns[2].use, Use::kLeftOut);
  EXPECT_EQ(found.columns[1].use, Use::kNumber);
}

TEST_F(TableProfileTest, ANameThatNoFileCanHoldIsANumber) {
  EXPECT_EQ(profile("\xff,kind\n" + records("1,x\n3,y\n", 9)).columns[0].key, "1");
}

TEST_F(TableProfileTest, WrongTablesAreRefusedAtTheirPlace) {
  const std::string good = "size,kind\n" + records("1,x\n2,y\n", 9);
  EXPECT_THAT(refused(ErrorCode::kUsage, good, "knid"),
              HasSubstr("t.csv:1:1: error: --target: there is no column 'knid' - did you mean "
                        "'kind'?"));
  EXPECT_THAT(refused(ErrorCode::kBadData, "size,kind\n" + records("1,x\n2,x\n", 9)),
              HasSubstr("t.csv:1:1: error: column 'kind' can't be learnt: every record has 'x'"));
  EXPECT_THAT(refused(ErrorCode::kBadData, "a,b\n"), HasSubstr("no record behind the header"));
  EXPECT_THAT(refused(ErrorCode::kBadData, "once upon a time\nthere was a king\n"),
              HasSubstr("the text has one column"));
  EXPECT_THAT(refused(ErrorCode::kBadData, "id,kind\n1,x\n2,y\n3,x\n4,y\n"),
              HasSubstr("no column is left"));
  EXPECT_THAT(refused(ErrorCode::kBadData, "\x1b[31m,kind\n" + records("1,x\n2,x\n", 9)),
              HasSubstr("can't be learnt"));
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData, [&] { profileTable(path("none.csv"), "a"); }),
              HasSubstr("cannot open it"));
}

}  // namespace
}  // namespace dtf::launcher
