#include "common/data/csv_header.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

class CsvHeaderTest : public ::testing::Test {
 protected:
  CsvHeaderTest() { spec_.label = "kind"; }

  // Returns the message about a file of this text, without the folder.
  std::string mistake(const std::string& text) {
    return mistakeOf([&] { readCsvHeader(std::vector{folder_.write("t.csv", text)}, spec_); },
                     ErrorCode::kBadData, folder_);
  }

  TemporaryFolder folder_;
  cluster::CsvSpec spec_;
};

TEST_F(CsvHeaderTest, TheHeaderAloneSaysWhatTheTableHolds) {
  const std::filesystem::path file = folder_.write("t.csv", "a,b,kind\nnot,read,yet\n");
  const CsvHeader header = readCsvHeader(std::vector{file}, spec_);
  EXPECT_EQ(header.features, (PartSpec{kFeatures, DType::kFloat32, Shape{2}}));
  EXPECT_EQ(header.labels, (PartSpec{kLabels, DType::kInt32, Shape()}));
}

TEST_F(CsvHeaderTest, AHeaderThatAStrayQuoteJoinsWithRecordsIsRefused) {
  EXPECT_EQ(mistake("a,kind,\"note\n1,0,x\n2,1,y\"\n3,0,z\n"),
            "t.csv:1:1: each of the 3 lines of the header could be one; a quote opens at t.csv:1:8 "
            "and closes in line 3: is it a stray one?");
}

// scikit-learn's wine_data.csv begins with the numbers of records and columns, and the classes.
TEST_F(CsvHeaderTest, AFirstLineThatIsNotTheHeaderOfItsRecordsIsNamed) {
  EXPECT_EQ(mistake("2,4,no,kind\n1.5,2.5,3.5,8,0\n4.5,5.5,6.5,9,1\n"),
            "t.csv:2:1: the records have 5 fields from here on, and the first line of t.csv names "
            "4 columns: skip what comes before the table with skip_lines, or remove it");
  spec_.skip_lines = 1;
  EXPECT_EQ(mistake("2,4,no,yes\na,b,c,d,kind\n4.5,5.5,6.5,9,1\n"), "") << "skipped";
  spec_.skip_lines = 0;
  EXPECT_EQ(mistake("a,kind\n1,2,3\n4,5\n"), "") << "a record that is broken";
  EXPECT_EQ(mistake("a,kind\n1,2,3\n"), "") << "no second record that is like it";
  EXPECT_EQ(mistake("a,kind\n"), "");
}

TEST_F(CsvHeaderTest, ALibsvmFileIsNamed) {
  const auto wrong = [&](const std::string& text) {
    return mistakeOf([&] { readCsvHeader(std::vector{folder_.write("t.csv", text)}, spec_); },
                     ErrorCode::kBadConfig, folder_);
  };
  spec_.header = false;
  spec_.label = "1";
  const std::string named =
      "t.csv: this seems to be a libsvm file, of labels and values with their index: set "
      "'format: libsvm'";
  EXPECT_EQ(wrong("1 1:0.5 3:2\n0 2:1.5\n"), named);
  EXPECT_EQ(wrong("1,12:30,18:15\n"), "") << "clock times";
  spec_.delimiter = ' ';
  EXPECT_EQ(wrong("-1 1:0.5 3:2\n0 2:1.5\n"), named);
  EXPECT_EQ(wrong("1 12:30 noon\n"), "");
  EXPECT_EQ(wrong("1 2\n"), "");
}

TEST_F(CsvHeaderTest, AnotherDelimiterIsNamed) {
  const auto wrong = [&](const std::string& text) {
    return mistakeOf([&] { readCsvHeader(std::vector{folder_.write("t.csv", text)}, spec_); },
                     ErrorCode::kBadConfig, folder_);
  };
  EXPECT_EQ(wrong("a;b;kind\n1,5;2;0\n"),
            "t.csv: the table seems to be divided by ';', the job's delimiter is ',': set "
            "'delimiter', or divide the table by ','");
  EXPECT_NE(wrong("a\tb\tkind\n1\t2\t0\n").find("divided by a tab, the job's delimiter is ','"),
            std::string::npos);
  spec_.delimiter = ';';
  EXPECT_NE(wrong("a,b,kind\n1,2,0\n").find("divided by ',', the job's delimiter is ';'"),
            std::string::npos);
  EXPECT_EQ(wrong("a;b,c;kind\n1;2;0\n"), "") << "a name may have a comma";
}

}  // namespace
}  // namespace dtf::data
