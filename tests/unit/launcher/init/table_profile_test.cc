#include "launcher/init/table_profile.h"

#include <gmock/gmock.h>

#include "common/base/text.h"
#include "launcher/init/column_facts.h"
#include "tests/unit/launcher/init/table_fixture.h"

namespace dtf::launcher {
namespace {

using Use = ColumnProfile::Use;
using ::testing::HasSubstr;

using TableProfileTest = TableTest;

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

TEST_F(TableProfileTest, AQuoteThatTheTableLeavesOpenIsNamed) {
  EXPECT_THAT(refused(ErrorCode::kBadData, "size;kind\n" + records("1;x\n2;y\n", 9) + "3;\"x\n"),
              HasSubstr("t.csv:20: the quote in this line is never closed"));
}

TEST_F(TableProfileTest, ARecordThatLacksANumberIsLeftOutOrTheColumnIs) {
  // One of 40 records lacks a, and half of them lack b. Columns are filled by their names, which
  // these can't be written in a job's file.
  const std::string text =
      "\xff"
      "a,\xff"
      "b,c,kind\n" +
      records("1.5,2,3,x\n2.5,,4,y\n", 19) + "NA,5,6,x\n3,7,1,y\n";
  const TableProfile found = profile(text);
  EXPECT_EQ(found.columns[0].use, Use::kNumber);
  EXPECT_EQ(found.columns[1].use, Use::kLeftOut);
  EXPECT_THAT(found.columns[1].why, HasSubstr("19 of 40 records lack it"));
  EXPECT_EQ(found.rows_left_out, 1);
}

TEST_F(TableProfileTest, GapsAreFilledWhereMostRecordsHaveANumber) {
  const TableProfile found = profile("a,b,c,kind\n" + records("1.5,2,3,x\n2.5,,4,y\n4,,1,x\n", 19) +
                                     "NA,5,6,x\n3,7,1,y\n");
  EXPECT_TRUE(found.columns[0].fills);
  EXPECT_EQ(found.columns[0].missing, 1);
  EXPECT_FALSE(found.columns[1].fills) << "two thirds of it are missing";
  EXPECT_EQ(found.columns[1].use, Use::kLeftOut);
  EXPECT_EQ(found.rows_left_out, 0);
}

TEST_F(TableProfileTest, WordsAmongNumbersAreNotFilled) {
  const TableProfile found =
      profile("a,b,kind\n" + records("1.5,2,x\n2.5,3,y\n", 30) + "few,2,x\n,4,y\n");
  EXPECT_TRUE(found.columns[0].fills);
  EXPECT_EQ(found.columns[0].missing, 2);
  EXPECT_EQ(found.columns[0].odd_fields, 1);
  EXPECT_EQ(found.rows_left_out, 1) << "the record with a word";
}

// Each of 400 records lacks other columns than the ones before.
TEST_F(TableProfileTest, GapsOfAllKindsAreCountedExactly) {
  std::string text;  // of columns that can't be filled
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})
    text += std::string("\xff") + name + ",";
  text += "kind\n";
  uint32_t random = 1;
  for (uint32_t row = 0; row < 400; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      random = random * 1664525 + 1013904223;
      const bool lacks = random >> 16 < (8 - column) * 1500;  // the first ones most
      text += lacks ? "," : std::to_string(row * (column + 2) % 97) + ",";
    }
    text += row % 2 == 0 ? "x\n" : "y\n";
  }
  const TableProfile found = profile(text);
  int64_t expected = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, ',');
    bool is_complete = fields.size() == 9 && fields[8] != "kind";
    for (size_t i = 0; is_complete && i < 8; ++i)
      is_complete = found.columns[i].use != Use::kNumber || !fields[i].empty();
    expected += is_complete;
  }
  EXPECT_GT(expected, 0);
  EXPECT_LT(expected, 400);
  EXPECT_EQ(found.rows - found.rows_left_out, expected);
}

TEST_F(TableProfileTest, TheWordsOfAllColumnsTogetherAreBounded) {
  std::string text = "long,short,n,kind\n";
  for (int i = 0; i < 600; ++i)
    text += std::string(200, 'x') + std::to_string(i % 60) + "," + (i % 3 == 0 ? "u," : "v,") +
            std::to_string(i % 7) + (i % 2 == 0 ? ",a\n" : ",b\n");
  folder_.write("t.csv", text);
  const TableProfile all = profileTable(path("t.csv"), std::nullopt);
  EXPECT_FALSE(all.columns[0].many);
  const TableProfile few = profileTable(path("t.csv"), std::nullopt, 8192);
  EXPECT_TRUE(few.columns[0].many);
  EXPECT_EQ(few.columns[0].distinct, 60);
  EXPECT_EQ(few.columns[1].words, all.columns[1].words);
  EXPECT_EQ(few.columns[3].words.size(), 2u);
}

TEST_F(TableProfileTest, LongWordsAreListedAsFarAsAFileHasRoom) {
  std::string header, text;
  for (int i = 0; i < 10; ++i) header += "c" + std::to_string(i) + ",";
  for (int row = 0; row < 400; ++row) {
    for (int i = 0; i < 10; ++i) text += std::string(500, 'a') + std::to_string(row % 80) + ",";
    text += row % 2 == 0 ? "x\n" : "y\n";
  }
  const TableProfile found = profile(header + "kind\n" + text);
  EXPECT_EQ(found.columns[0].words.size(), 80u);
  EXPECT_EQ(found.columns[9].use, Use::kWords);
  EXPECT_TRUE(found.columns[9].words.empty());
}

// At 50 000 columns, samples of 1024 words would take 2 GB.
TEST_F(TableProfileTest, TheSamplesOfManyColumnsTakeABoundedMemory) {
  EXPECT_EQ(sampleMaxOf(100), 1024u);
  for (const size_t columns : {1'000u, 10'000u, 50'000u})
    EXPECT_LE(columns * sampleMaxOf(columns) * DistinctWords::kChecksumCost, kTableWordBytesMax);
  EXPECT_GE(sampleMaxOf(50'000), 50u) << "it still says which words are many";
}

TEST_F(TableProfileTest, MoreColumnsThanInitLooksAtAreRefused) {
  std::string line;
  for (int i = 0; i < 50'001; ++i) line += "1,";
  EXPECT_THAT(refused(ErrorCode::kBadData, records(line + "2\n", 2)),
              HasSubstr("50002 columns are more than the 50000"));
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
  EXPECT_THAT(refused(ErrorCode::kBadData, "size\n" + records("1\n2\n", 9)),
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
