#include "common/data/csv_records.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

// "[a|b][c|d]"
std::string recordsOf(const std::string& text, char delimiter = ',') {
  const TemporaryFolder folder;
  CsvRecords records(folder.write("t.csv", text), delimiter);
  std::string all;
  while (records.next()) {
    all += "[";
    for (size_t i = 0; i < records.size(); ++i)
      all += (i > 0 ? "|" : "") + std::string(records.field(i));
    all += "]";
  }
  return all;
}

TEST(CsvRecords, SplitsAtDelimitersAndLineEnds) {
  EXPECT_EQ(recordsOf("a,b\nc,d\n"), "[a|b][c|d]");
  EXPECT_EQ(recordsOf("a,b\r\nc,d"), "[a|b][c|d]");
  EXPECT_EQ(recordsOf("a\tb\r\rc\t\n", '\t'), "[a|b][c|]");
  EXPECT_EQ(recordsOf(",\n\n,,\n\"\"\n"), "[|][||][]");
  EXPECT_EQ(recordsOf(""), "");
  EXPECT_EQ(recordsOf("\n\n"), "");
}

TEST(CsvRecords, LinesBeforeTheTableAreSkipped) {
  const TemporaryFolder folder;
  const std::filesystem::path file =
      folder.write("t.csv", "\xef\xbb\xbfof \"May\r\n\r\na,b\n1,2\n");
  CsvRecords records(file, ',', 0, 2);
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.field(0), "a") << "a quote in a skipped line opens nothing";
  EXPECT_EQ(records.line(), 3);
  CsvRecords all(file, ',', 0, 9);
  EXPECT_FALSE(all.next());
}

TEST(CsvRecords, QuotedFieldsHoldAnything) {
  EXPECT_EQ(recordsOf("\"a,\"\"b\"\"\",\"c\r\nd\"\n\"e\"f\n"), "[a,\"b\"|c\nd][ef]");
  EXPECT_EQ(recordsOf("a\"b,c\n"), "[a\"b|c]") << "a quote elsewhere is none";
}

TEST(CsvRecords, KnowTheirPlaces) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("t.csv", "a,b\n\"x\ny\", z\nq,r\n");
  CsvRecords records(file, ',');
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.where(1), file.string() + ":1:3");
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.where(0), file.string() + ":2:1");
  EXPECT_EQ(records.where(1), file.string() + ":3:4");
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.where(0), file.string() + ":4:1");
  EXPECT_FALSE(records.next());
}

TEST(CsvRecords, RefuseARecordThatNeverEnds) {
  const std::string long_line(kCsvRecordBytesMax + 1, 'x');
  const auto failure = [](const std::string& text) -> std::string {
    try {
      recordsOf(text);
    } catch (const Error& error) {
      return error.message();
    }
    return "accepted";
  };
  const std::string plain = failure("a,b\n" + long_line + "\n");
  EXPECT_NE(plain.find("t.csv:2: the record that begins here has more than 16777216 bytes"),
            std::string::npos)
      << plain;
  // The quote may open on a later line than the record's first.
  const std::string quoted = failure("a,b\n\"1\n2\",\"" + long_line + "\"\n");
  EXPECT_NE(
      quoted.find("t.csv:3: the quote in this line is not closed within 16777216 bytes: is it "
                  "a stray one?"),
      std::string::npos)
      << quoted;
}

TEST(CsvRecords, TheQuoteThatJoinsLinesIsNamed) {
  const TemporaryFolder folder;
  const std::filesystem::path file =
      folder.write("t.csv", "a,\"b\"\n1,\"2\n3,4\n5\",6\n\"x\",\"y\nz\"\n");
  CsvRecords records(file, ',');
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.joinedText(), "");
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.joinedText(),
            "a quote opens at " + file.string() + ":2:3 and closes in line 4: is it a stray one?");
  ASSERT_TRUE(records.next());
  EXPECT_EQ(records.joinedText(),
            "a quote opens at " + file.string() + ":5:5 and closes in line 6: is it a stray one?");
}

TEST(CsvRecords, EachLineOfARecordIsDividedByItself) {
  const TemporaryFolder folder;
  const auto linesOf = [&folder](const std::string& text, size_t read_max = 9) {
    CsvRecords records(folder.write("t.csv", text), ',');
    EXPECT_TRUE(records.next());
    std::string lines;
    size_t read = 0;
    const bool all = records.allLinesFit([&](std::span<const std::string_view> fields) {
      lines += "[";
      for (const std::string_view field : fields) lines += std::string(field) + "|";
      lines += "]";
      return ++read < read_max;
    });
    return lines + (all ? " all" : " not all");
  };
  EXPECT_EQ(linesOf("1,\"2,3\n4,5,6\n7,8\",9\n"), "[1|2|3|][4|5|6|][7|8|9|] all");
  EXPECT_EQ(linesOf("1,\"2,0\"\n"), "[1|2,0|] all") << "a delimiter in a quote that joins nothing";
  EXPECT_EQ(linesOf("1,\"2,3\n4,5,6\n7,8\",9\n", 2), "[1|2|3|][4|5|6|] not all");
  EXPECT_EQ(linesOf("1,\"2,3\n4,5\n7,8\",9\n"), "[1|2|3|] not all") << "too few fields";
  EXPECT_EQ(linesOf("1,\"2,3,4\n5,6\",7\n"), " not all") << "too many";
  EXPECT_EQ(linesOf("1,\"2,3\n4,5,6\",7\n"), "[1|2|3|] not all") << "too many in the last line";
}

TEST(CsvRecords, RefuseARecordOfTooManyFields) {
  try {
    recordsOf("a,b\n" + std::string(kCsvFieldsMax, ',') + "\n");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(
        error.message().find("t.csv:2: the record that begins here has more than 1048576 fields"),
        std::string::npos)
        << error.message();
  }
}

TEST(CsvRecords, SkipsLinesThatBeginWithTheCommentSign) {
  const TemporaryFolder folder;
  const std::filesystem::path file =
      folder.write("t.csv", "# a, \"table\na,b\n#\n1,#2\n\"#3\",4\n# end");
  CsvRecords records(file, ',', '#');
  std::vector<std::string> fields;
  while (records.next()) {
    EXPECT_EQ(records.size(), 2u);
    for (size_t i = 0; i < 2; ++i) fields.emplace_back(records.field(i));
  }
  EXPECT_EQ(fields, (std::vector<std::string>{"a", "b", "1", "#2", "#3", "4"}));
}

}  // namespace
}  // namespace dtf::data
