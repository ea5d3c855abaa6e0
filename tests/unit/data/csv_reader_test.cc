#include "common/data/csv_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

class CsvReader : public ::testing::Test {
 protected:
  CsvReader() { spec_.label = "kind"; }

  Dataset read(const std::vector<std::string>& texts) {
    std::vector<std::filesystem::path> files;
    for (const std::string& text : texts)
      files.push_back(folder_.write("t" + std::to_string(files.size()) + ".csv", text));
    return readCsv(files, spec_);
  }
  // Without the folder.
  std::string mistake(const std::vector<std::string>& texts, ErrorCode code = ErrorCode::kBadData) {
    return mistakeOf([&] { read(texts); }, code, folder_);
  }
  static std::vector<float> floats(const Part& part) {
    const std::span<const float> values = part.as<float>();
    return {values.begin(), values.end()};
  }
  static std::vector<int32_t> classes(const Part& part) {
    const std::span<const int32_t> values = part.as<int32_t>();
    return {values.begin(), values.end()};
  }

  TemporaryFolder folder_;
  cluster::CsvSpec spec_;
};

TEST_F(CsvReader, ReadsFeaturesAndClassesByTheNamesOfTheColumns) {
  const Dataset table = read({"a,kind,b\n1,0,-2.5\n 3e2 ,7,+.5\n"});
  EXPECT_EQ(table.features().spec().shape, Shape{2});
  EXPECT_EQ(floats(table.features()), (std::vector<float>{1, -2.5F, 300, 0.5F}));
  EXPECT_EQ(classes(table.labels()), (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(table.leftOut().size(), 0u);
}

TEST_F(CsvReader, ReadsNumbersToLearnAndTheColumnsThatAreAskedFor) {
  spec_.label = "";
  spec_.targets = {"y", "x"};
  spec_.features = {"3"};
  const Dataset table = read({"x,y,z,w\n1,2,3,word\n5,6,7,\n"});
  EXPECT_EQ(floats(table.features()), (std::vector<float>{3, 7}));
  EXPECT_EQ(floats(table.labels()), (std::vector<float>{2, 1, 6, 5}));
  EXPECT_EQ(table.labels().spec().shape, Shape{2});
}

TEST_F(CsvReader, ReadsTablesWithoutAHeaderAndOtherDelimiters) {
  spec_.header = false;
  spec_.label = "1";
  spec_.delimiter = ';';
  const Dataset table = read({"4;1;2\n5;3;4\n", "6;5;6"});
  EXPECT_EQ(floats(table.features()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(classes(table.labels()), (std::vector<int32_t>{4, 5, 6}));
}

TEST_F(CsvReader, ReadsWordsAsClasses) {
  spec_.class_names = {"cat", "dog"};
  spec_.max_bad_records = 1;
  const Dataset table = read({"a,kind\n1,dog\n2, cat\n3,\"dog\"\n4,cow\n"});
  EXPECT_EQ(classes(table.labels()), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(table.leftOut().size(), 1u);
}

TEST_F(CsvReader, ReadsQuotesLineEndsOfAnyKindAndGzip) {
  const std::string text = "\xef\xbb\xbf\"a \"\"x\"\"\",kind\r\n\"1\",2\r\n\r\n2,\"3\"\r3,4";
  EXPECT_EQ(classes(read({text}).labels()), (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(classes(read({gzipped(text)}).labels()), (std::vector<int32_t>{2, 3, 4}));
}

TEST_F(CsvReader, AMalformedRecordMayCostOneRecord) {
  spec_.max_bad_records = 100;
  const Dataset table =
      read({"a,kind,b\n1,0,1\nx,1,2\n3,1\n4,2.5,4\n5,-1,5\n6,1,1e99\n7,1,nan\n8,1,\n9,1,9\n"});
  ASSERT_EQ(table.leftOut().size(), 7u);
  EXPECT_EQ(table.leftOut()[0].index, 1);
  EXPECT_EQ(table.leftOut()[6].index, 7);
  EXPECT_EQ(floats(table.features()), (std::vector<float>{1, 1, 9, 9}));
  EXPECT_EQ(classes(table.labels()), (std::vector<int32_t>{0, 1}));
}

// Nothing is left out unless the job's file lets it be.
TEST_F(CsvReader, BadRecordsAreNamedWithTheirPlaces) {
  const auto refused = [](const std::string& of, const std::string& reason) {
    return "1 of " + of +
           " records can't be read, and max_bad_records is 0: mend them, or let it "
           "be so many:\n  " +
           reason;
  };
  EXPECT_NE(mistake({"a,kind\n1,0\n1,0\nx y,1\n"}).find(refused("3", "")), std::string::npos)
      << mistake({"a,kind\n1,0\n1,0\nx y,1\n"});
  EXPECT_NE(
      mistake({"a,kind\n1,0\n1,0\nx y,1\n"}).find("t0.csv:4:1: 'x y' in column 'a' is no number"),
      std::string::npos);
  EXPECT_NE(mistake({"a,kind\n1,0\n", "a,kind\n1,0,3\n"})
                .find("t1.csv:2:5: the record has 3 fields, the others have 2"),
            std::string::npos);
  EXPECT_NE(mistake({"a,kind\n1,0\n\"1\n\",2\n3,k\n"})
                .find("t0.csv:3:1: '1 ' in column 'a' is no number"),
            std::string::npos);
  EXPECT_NE(
      mistake({"a,kind\n1,0\n1,1.5\n"})
          .find("t0.csv:3:3: '1.5' in column 'kind' is no class, a whole number from 0: list the "
                "classes"),
      std::string::npos);
  spec_.class_names = {"cat"};
  EXPECT_NE(mistake({"a,kind\n1,cat\n1,cot\n"})
                .find("t0.csv:3:3: 'cot' in column 'kind' is none of the class_names"),
            std::string::npos);
  spec_.max_bad_records = 1;
  const std::string two = mistake({"a,kind\n1,cot\n1,cut\n2,cat\n"});
  EXPECT_NE(two.find("2 of 3 records can't be read, and max_bad_records is 1"), std::string::npos)
      << two;
  EXPECT_NE(two.find("t0.csv:2:3: 'cot'"), std::string::npos) << two;
  EXPECT_NE(two.find("t0.csv:3:3: 'cut'"), std::string::npos) << two;
  EXPECT_NE(mistake({"a,kind\n1,cot\n"}).find("none of 1 records can be read"), std::string::npos);
  EXPECT_EQ(mistake({"a,kind\n"}), "t0.csv: there is no record behind the header");
}

TEST_F(CsvReader, WhatIsTooSmallForADoubleIsZero) {
  EXPECT_EQ(floats(read({"a,kind\n1e-310,0\n1e-400,0\n-1e-999,1\n"}).features()),
            (std::vector<float>{0, 0, 0}));
}

TEST_F(CsvReader, ColumnsThatAreNotThereAreAMistakeOfTheJob) {
  spec_.label = "kimd";
  EXPECT_EQ(mistake({"a,kind\n1,2\n"}, ErrorCode::kBadConfig),
            "t0.csv: there is no column 'kimd' among 2 - did you mean 'kind'?");
  spec_.label = "kind";
  spec_.features = {"kind"};
  EXPECT_EQ(mistake({"a,kind\n1,2\n"}, ErrorCode::kBadConfig),
            "t0.csv: column 'kind' is asked for twice");
  spec_.features = {};
  EXPECT_EQ(mistake({"kind\n1\n"}, ErrorCode::kBadConfig),
            "t0.csv: no column is left for the features");
  EXPECT_EQ(mistake({"a,kind\n1,2\n", "b,kind\n1,2\n"}, ErrorCode::kBadConfig)
                .find("t1.csv: its columns are others than those of "),
            0u);
  spec_.label = "a";
  EXPECT_EQ(mistake({"a,b,a\n1,2,3\n"}, ErrorCode::kBadConfig),
            "t0.csv: 2 columns are named 'a': give each a name of its own");
  spec_.label = "kind";
  EXPECT_EQ(mistake({"1,2\n3,4\n"}, ErrorCode::kBadConfig),
            "t0.csv: the first line has numbers only: say 'header: true' if they name the columns, "
            "or 'header: false' if it is a record");
  spec_.header_is_said = true;
  spec_.label = "2";
  EXPECT_EQ(floats(read({"1,2\n3,4\n"}).features()), (std::vector<float>{3}))
      << "as pandas writes them";
}

// Else it would be lost without a word, whenever its label is a word.
TEST_F(CsvReader, AFirstRecordIsNotTakenForAHeader) {
  spec_.label = "3";
  const std::string expected =
      "t0.csv: the first line looks like a record: say 'header: false' if it is one, or 'header: "
      "true' if it names the columns";
  EXPECT_EQ(mistake({"5.1,3.5,setosa\n4.9,3,setosa\n"}, ErrorCode::kBadConfig), expected);
  spec_.class_names = {"setosa"};
  EXPECT_EQ(mistake({"?,3.5,setosa\n4.9,3,setosa\n"}, ErrorCode::kBadConfig), expected);
  spec_.label = "kind";
  spec_.class_names = {};
  EXPECT_EQ(mistake({"0,1,kind\n5,6,1\n"}), "") << "columns may be named 0, 1";
}

TEST_F(CsvReader, AFieldIsANumberAsAWhole) {
  spec_.max_bad_records = 4;
  const Dataset table = read({"a,kind\n\"1\"2,0\n+-5,0\n+5,0\n\"7\",0\n++1,0\n+,0\n"});
  EXPECT_EQ(floats(table.features()), (std::vector<float>{5, 7}));
  EXPECT_EQ(table.leftOut().size(), 4u);
  spec_.max_bad_records = 0;
  EXPECT_NE(mistake({"a,kind\n\"1\"2,0\n"})
                .find("t0.csv:2:1: something follows the closing quote of this field"),
            std::string::npos);
  EXPECT_NE(mistake({"a,kind\n\"1,0\n1,0\"\n1,0\n"})
                .find("t0.csv:2:1: the record has 1 fields in 2 lines, the others have 2; a quote "
                      "opens at t0.csv:2:1 and closes in line 3: is it a stray one?"),
            std::string::npos);
  EXPECT_NE(mistake({"a,kind\n1,0\n1,\"0\n1,0\n1\",0\n"})
                .find("; a quote opens at t0.csv:3:3 and closes in line 5: is it a stray one?"),
            std::string::npos);
}

TEST_F(CsvReader, WhatIsNoTableIsNamed) {
  EXPECT_EQ(mistake({""}), "t0.csv: the file is empty");
  EXPECT_EQ(mistake({std::string("\x93NUMPY\x01\x00v", 9)}),
            "t0.csv: this looks like a NumPy array (.npy); expected a table in text (CSV)");
  EXPECT_EQ(mistake({std::string("\xff\xfe"
                                 "a\0,\0",
                                 6)}),
            "t0.csv: this looks like text in UTF-16 (save it as UTF-8); expected a table in text "
            "(CSV)");
  EXPECT_EQ(mistake({"\x28\xb5\x2f\xfd packed"}),
            "t0.csv: this looks like a file packed by zstd; expected a table in text (CSV)");
  EXPECT_EQ(mistake({"a,kind\n1,2\n\"3,4\n5,6\n"}),
            "t0.csv:3: the quote in this line is never closed");
}

// Each message names the remedy.
TEST_F(CsvReader, LabelsThatAreNoWholeNumbersAreForClassNames) {
  for (const std::string label : {"-1", "1.0", "yes", "True"})
    EXPECT_NE(mistake({"a,kind\n1,1\n1," + label + "\n"})
                  .find("t0.csv:3:3: '" + label +
                        "' in column 'kind' is no class, a whole number from 0: list the classes "
                        "as the table writes them with class_names"),
              std::string::npos)
        << label;
  spec_.class_names = {"-1", "1"};
  EXPECT_EQ(mistake({"a,kind\n1,1\n1,-1\n"}), "");
  spec_.class_names = {"setosa", "virginica"};
  EXPECT_NE(mistake({"a,kind\n1,setosa\n1,virginca\n"})
                .find("'virginca' in column 'kind' is none of the class_names - did you mean "
                      "'virginica'?"),
            std::string::npos);
}

TEST_F(CsvReader, AColumnOfWordsIsForCategoricalColumns) {
  const std::string hint =
      "; list a column of words under categorical_columns, or leave it out with feature_columns";
  const std::string words = mistake({"a,kind\nrome,1\nyork,0\n"});
  EXPECT_NE(words.find("t0.csv:2:1: 'rome' in column 'a' is no number" + hint + "\n"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("t0.csv:3:1: 'york' in column 'a' is no number"), std::string::npos);
  EXPECT_EQ(words.find(hint), words.rfind(hint)) << "once";
  EXPECT_EQ(mistake({"a,kind\n,1\n?,0\n"}).find(hint), std::string::npos) << "gaps";
}

// What is to be predicted has no label, or one that nobody reads.
TEST_F(CsvReader, ReadsTheFeaturesAlone) {
  const auto features = [this](const std::string& text, int64_t width) {
    return floats(readCsvExamples(folder_.write("p.csv", text), spec_, width).features);
  };
  const std::vector<float> wanted = {1, 2, 3, 4};
  EXPECT_EQ(features("a,b\n1,2\n3,4\n", 2), wanted);
  EXPECT_EQ(features("a,kind,b\n1,?,2\n3,,4\n", 2), wanted);
  spec_.features = {"b"};
  EXPECT_EQ(features("a,b\n1,2\n3,4\n", 1), (std::vector<float>{2, 4}));
}

// Each record is to have its answer, also one that can't be read.
TEST_F(CsvReader, OfWhatIsToBePredictedBadRecordsAreGivenWithTheirReasons) {
  const CsvExamples examples =
      readCsvExamples(folder_.write("p.csv", "a,kind\nx,0\n2,1\n3,?\ny,0\n"), spec_, 1);
  EXPECT_EQ(floats(examples.features), (std::vector<float>{2, 3}));
  EXPECT_EQ(examples.truths, (std::vector<std::string>{"1", "?"})) << "as the table has them";
  ASSERT_EQ(examples.unread.size(), 2u);
  EXPECT_EQ(examples.unread[0].index, 0);
  EXPECT_EQ(examples.unread[1].index, 3);
  EXPECT_NE(examples.unread[1].reason.find("p.csv:5:1: 'y' in column 'a' is no number"),
            std::string::npos);
  EXPECT_THROW(readCsvExamples(folder_.write("q.csv", "a,kind\nx,0\n"), spec_, 1), Error)
      << "none at all";
}

TEST_F(CsvReader, TheHeaderAloneSaysWhatTheTableHolds) {
  const std::filesystem::path file = folder_.write("t.csv", "a,b,kind\nnot,read,yet\n");
  const CsvHeader header = readCsvHeader(std::vector{file}, spec_);
  EXPECT_EQ(header.features, (PartSpec{kFeatures, DType::kFloat32, Shape{2}}));
  EXPECT_EQ(header.labels, (PartSpec{kLabels, DType::kInt32, Shape()}));
}

}  // namespace
}  // namespace dtf::data
