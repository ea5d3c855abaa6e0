#include "launcher/init/table_form.h"

#include <gmock/gmock.h>

#include "tests/unit/launcher/init/table_fixture.h"

namespace dtf::launcher {
namespace {

using Use = ColumnProfile::Use;
using ::testing::HasSubstr;
using TableFormTest = TableTest;

TEST_F(TableFormTest, DelimitersAndHeadersAreFound) {
  EXPECT_EQ(profile("a;b\n" + records("1.5;x, u\n2.7;y, v\n", 9)).form.delimiter, ';');
  EXPECT_EQ(profile("a\tb\n" + records("1\tx\n2\ty\n", 9)).form.delimiter, '\t');
  const TableProfile without = profile(records("5.1,3.5,setosa\n6.2,2.9,other\n", 9));
  EXPECT_FALSE(without.form.header);
  EXPECT_EQ(without.rows, 18);
  EXPECT_EQ(without.columns[2].name, "3");
  EXPECT_FALSE(profile(records("p,x\ne,y\n", 9)).form.header) << "words that come again below";
  EXPECT_TRUE(profile("edible,cap\n" + records("p,x\ne,y\n", 9)).form.header);
}

TEST_F(TableFormTest, DecimalCommasAreFound) {
  const TableProfile found = profile("a;b;kind\n" + records("1,5;2;x\n2,75;3;y\n", 9));
  EXPECT_EQ(found.form.decimal, ',');
  EXPECT_EQ(found.columns[0].use, Use::kNumber);
  EXPECT_EQ(found.columns[0].mean, 2.125);
  EXPECT_TRUE(found.form.header);
  EXPECT_FALSE(profile(records("1,5;2;x\n2,75;3;y\n", 9)).form.header);
  const TableProfile target = profile("a;b\n" + records("1;0,5\n2;1,25\n3;4,125\n", 9));
  EXPECT_FALSE(target.learns_classes);
  const TableProfile many = profile("a;b;y\n" + records("0,5;0,1;2,75\n1,5;1,25;4,5\n", 9));
  EXPECT_EQ(many.form.delimiter, ';') << "a comma divides each record into more fields";
  EXPECT_EQ(many.form.skip_lines, 0);
  EXPECT_EQ(profile("a;b;y\n" + records("1,234;1;0\n999;2;1\n", 9)).form.decimal, '.')
      << "these may be thousands";
  const TableProfile mixed = profile("a;b;kind\n" + records("1,5;2.5;x\n2,75;3.5;y\n", 9));
  EXPECT_EQ(mixed.form.decimal, '.');
  EXPECT_EQ(mixed.columns[0].why, "'1,5' has a decimal comma, other columns have a point");
  EXPECT_EQ(profile("a,b,kind\n" + records("\"1,5\",1,x\n2,2,y\n", 9)).form.decimal, '.')
      << "a job reads no such table";
}

TEST_F(TableFormTest, LinesBeforeTheTableAreSkipped) {
  const std::string rows = records("1.5,2,0\n2.5,1,1\n", 9);
  const TableProfile counts = profile("18,2,no,yes\n" + rows);  // as scikit-learn's tables begin
  EXPECT_EQ(counts.form.skip_lines, 1);
  EXPECT_FALSE(counts.form.header);
  EXPECT_EQ(counts.rows, 18);
  const TableProfile titled = profile("Measured in May\n\na,b,y\n" + rows);
  EXPECT_EQ(titled.form.skip_lines, 2);
  EXPECT_TRUE(titled.form.header);
  EXPECT_EQ(titled.columns[0].name, "a");
  EXPECT_EQ(profile("a,b,y\n" + rows).form.skip_lines, 0);
  // A title that looks like names of fewer columns may be the header of R, without the first name.
  refused(ErrorCode::kBadData, "b,y\n" + rows);
}

// For another delimiter, the quote in the middle of a field would begin one.
TEST_F(TableFormTest, AQuoteThatOnlyAnotherDelimiterOpensIsHarmless) {
  const TableProfile semicolons =
      profile("size;note;kind\n" + records("1;board,\"3 inch;x\n2;plank;y\n", 9));
  EXPECT_EQ(semicolons.form.delimiter, ';');
  EXPECT_EQ(semicolons.rows, 18);
  const TableProfile commas = profile("size,note,kind\n" + records("1,a;\"b,x\n2,d,y\n", 9));
  EXPECT_EQ(commas.form.delimiter, ',');
  EXPECT_EQ(commas.columns.size(), 3u);
}

TEST_F(TableFormTest, RunningTextIsRefusedWithWhatToDo) {
  const std::string verses = records("Once upon a time there was a king.\n", 3);
  const std::string tale =
      "Once upon a time, in a land of hills, rivers and woods, there was a king. He had a\n"
      "daughter, \"who was so fair\" that the sun itself was amazed; but she was proud.\n\n"
      "\"Who are you?\" she said, \"and why do you, a stranger, come to my well?\"\n"
      "\"I know how to help you,\" said the frog. \"But what will you give me\n"
      "if I fetch your ball out of the well again?\n";
  const std::string beginning = tale.substr(0, tale.find("\"I know"));  // alike, but for a line
  for (const std::string& text : {verses, tale, beginning, tale + "\"Whatever you like.\n"}) {
    const std::string why = refused(ErrorCode::kBadData, text);
    EXPECT_THAT(why, HasSubstr("this looks like running text, which dtf has no reader for"));
    EXPECT_THAT(why, HasSubstr("init reads tables in text (.csv, .tsv"));
    EXPECT_THAT(why, HasSubstr("save it as an array of character codes: DATA.md"));
  }
}

}  // namespace
}  // namespace dtf::launcher
