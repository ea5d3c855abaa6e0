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
  // Returns the message without the folder.
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

TEST_F(CsvReader, AFieldInAnotherFormSaysHowToReadIt) {
  spec_.delimiter = ';';
  EXPECT_EQ(mistake({"a;b;kind\n1,5;2,5;0\n2,5;1;1\n"}),
            "t0.csv: none of 2 records can be read:\n  t0.csv:2:1: '1,5' in column 'a' is no "
            "number; with 'decimal: comma' it is one\n  t0.csv:3:1: '2,5' in column 'a' is no "
            "number");
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

// Records are skipped only if the job's file allows it.
TEST_F(CsvReader, BadRecordsAreNamedWithTheirPlaces) {
  const auto refused = [](const std::string& of, const std::string& reason) {
    return "1 of " + of +
           " records can't be read, and max_bad_records is 0; raise max_bad_records of data.train "
           "or data.eval to 1, or "
           "mend the rows:\n  " +
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
            "t0.csv: column 'kind' is listed twice");
  spec_.features = {};
  EXPECT_EQ(mistake({"kind\n1\n"}, ErrorCode::kBadConfig),
            "t0.csv: no column is left for the features");
  EXPECT_EQ(mistake({"a,kind\n1,2\n", "b,kind\n1,2\n"}, ErrorCode::kBadConfig)
                .find("t1.csv: it has other columns than "),
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

// Otherwise it would be lost silently whenever its label is a word.
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

// The stray quote is in a column that nobody reads, so nothing else is wrong with the record.
TEST_F(CsvReader, RecordsThatAStrayQuoteJoinsAreNotLost) {
  spec_.features = {"a"};
  const std::string table = "a,kind,note\n1,0,\"x\n2,1,\n3,0,z\"\n4,1,\n";
  const std::string wrong =
      "t0.csv:2:1: each of the 3 lines of this record could be one; a quote opens at t0.csv:2:5 "
      "and closes in line 4: is it a stray one?";
  EXPECT_NE(mistake({table}).find(wrong), std::string::npos) << mistake({table});
  spec_.whole_features = true;
  EXPECT_NE(mistake({table}).find(wrong), std::string::npos);
  spec_.whole_features = false;
  spec_.class_names = {"0", "1"};
  EXPECT_NE(mistake({table}).find(wrong), std::string::npos);
  spec_.max_bad_records = 1;
  EXPECT_EQ(floats(read({table}).features()), std::vector<float>{4});
  const CsvExamples examples = readCsvExamples(folder_.write("p.csv", table), spec_, 1);
  ASSERT_EQ(examples.unread.size(), 1u);
  EXPECT_EQ(examples.unread[0].index, 0);
  EXPECT_EQ(floats(examples.features), std::vector<float>{4});
}

TEST_F(CsvReader, TextOfSeveralLinesIsOneRecord) {
  spec_.features = {"a"};
  // Lines with other numbers of fields, without a number, without a class.
  for (const std::string text :
       {"x\ny", "x, y, z\n1, 2", "x\nfar, near, y", "x\n2, none, y", "x\n2,-1,y", "\n"}) {
    const Dataset table = read({"a,kind,note\n1,0,\"" + text + "\"\n2,1,\"\"\"q\"\"\"\n"});
    EXPECT_EQ(floats(table.features()), (std::vector<float>{1, 2})) << text;
  }
  spec_.features = {"a\nb"};
  EXPECT_EQ(floats(read({"\"a\nb\",kind\n1,0\n"}).features()), std::vector<float>{1});
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
  for (const std::string label : {"1.0", "yes", "True"})
    EXPECT_EQ(classes(read({"a,kind\n1,0\n1," + label + "\n"}).labels()),
              (std::vector<int32_t>{0, 1}))
        << label;
  for (const std::string label : {"-1", "1.5", "maybe"})
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

TEST_F(CsvReader, AMissingNumberIsToBeMendedOrLeftOut) {
  const std::string hint =
      "; the value is missing: fill it with numeric_columns, mend the row, leave it out with "
      "max_bad_records";
  for (const std::string gap : {"NA", "", "nan", "?", "N/A", "null"}) {
    const std::string said = mistake({"a,kind\n1,0\n" + gap + ",1\n" + gap + ",0\nrome,1\n"});
    EXPECT_NE(said.find("t0.csv:3:1: '" + gap + "' in column 'a' is no number" + hint +
                        ", or leave the column out with feature_columns\n"),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find(hint), said.rfind(hint)) << "once\n" << said;
    EXPECT_EQ(said.find("categorical_columns"), said.rfind("categorical_columns")) << said;
    EXPECT_LT(said.find("'rome'"), said.find("categorical_columns")) << "it is the word's\n"
                                                                     << said;
  }
  spec_.label = "";
  spec_.targets = {"kind"};
  const std::string of_target = mistake({"a,kind\n1,NA\n2,0\n"});
  EXPECT_NE(of_target.find("mend the row, or leave it out with max_bad_records"), std::string::npos)
      << of_target;
}

// Raised to the number that it names, the limit is enough.
TEST_F(CsvReader, TheErrorNamesHowManyRecordsAreBad) {
  std::string text = "a,kind\n1,0\n1,1\n";
  for (int i = 0; i < 37; ++i) text += "NA,1\n";
  spec_.max_bad_records = 5;
  EXPECT_NE(
      mistake({text}).find("37 of 39 records can't be read, and max_bad_records is 5; raise "
                           "max_bad_records of data.train or data.eval to 37, or mend the rows:\n"),
      std::string::npos)
      << mistake({text});
  spec_.max_bad_records = 37;
  EXPECT_EQ(read({text}).size(), 2);
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

// Each record gets a result, even one that can't be read.
TEST_F(CsvReader, OfWhatIsToBePredictedBadRecordsAreGivenWithTheirReasons) {
  const CsvExamples examples =
      readCsvExamples(folder_.write("p.csv", "a,kind\nx,0\n2,1\n3,?\ny,0\n"), spec_, 1);
  EXPECT_EQ(floats(examples.features), (std::vector<float>{2, 3}));
  EXPECT_EQ(examples.truths, (std::vector<std::string>{"1", "?"})) << "as the table has them";
  ASSERT_EQ(examples.unread.size(), 2u);
  EXPECT_EQ(examples.unread[0].index, 0);
  EXPECT_EQ(examples.unread[1].index, 3);
  for (const BadRecord& unread : examples.unread)
    EXPECT_TRUE(
        unread.reason.ends_with("' in column 'a' is no number; the model reads numbers in "
                                "this column: mend the field"))
        << unread.reason;
  EXPECT_NE(examples.unread[1].reason.find("p.csv:5:1: 'y'"), std::string::npos);
  EXPECT_THROW(readCsvExamples(folder_.write("q.csv", "a,kind\nx,0\n"), spec_, 1), Error)
      << "none at all";
}

// A model has learnt little of them, and its answers look like any other.
TEST_F(CsvReader, WordsThatTheListLacksAreCountedByColumn) {
  spec_.no_features = true;
  spec_.max_bad_records = 1;
  spec_.categorical = {{"plan", {"plan", "former"}, 0, {"basic", "plus"}, 1},
                       {"town", {"town"}, 100},
                       {"when", {"when"}, 0, {"am", "pm"}, 2}};
  const Dataset table = read({"plan,former,town,when,kind\nbasic,plus,rome,am,0\n",
                              "plan,former,town,when,kind\ngold,plus,rome,am,x\n"
                              "plus,gold,rome,pm,1\nbasic,Plus,oslo,am,1\nbasic,,oslo,?,1\n"});
  ASSERT_EQ(table.leftOut().size(), 1u) << "its words don't count";
  ASSERT_EQ(table.otherWords().size(), 2u) << "hashed words are all alike";
  const std::string text = otherWordsText(table.otherWords()[0]);
  EXPECT_TRUE(
      text.starts_with("3 words in column 'former' are not of its vocabulary_list (first: "
                       "'gold' in "))
      << text;
  EXPECT_TRUE(text.ends_with("t1.csv:3:6): they take the row for other words")) << text;
  EXPECT_NE(otherWordsText(table.otherWords()[1]).find("1 word in column 'when' is not of"),
            std::string::npos);
  EXPECT_EQ(countOf(table.otherWords()), 4);

  const TrainedColumns trained{{}, {{"plan", "former"}, {"town"}, {"when"}}};
  const CsvExamples examples = readCsvExamples(
      folder_.write("p.csv", "when,town,plan,former\npm,rome,gold,basic\n"), spec_, 1, &trained);
  ASSERT_EQ(examples.other_words.size(), 1u);
  EXPECT_EQ(examples.other_words[0].column, "plan");
}

TEST_F(CsvReader, OfWhatIsToBePredictedColumnsAreKeptAsTheyAre) {
  spec_.features = {"a"};
  const std::vector<std::string> keep = {"id,a"};
  const CsvExamples examples = readCsvExamples(
      folder_.write("p.csv", "id,a\n007,1\n8,x\n9\n\"10, 11\",4\n"), spec_, 1, nullptr, keep);
  EXPECT_EQ(examples.kept.names, (std::vector<std::string>{"id", "a"}));
  EXPECT_EQ(examples.kept.fields,
            (std::vector<std::string>{"007", "1", "8", "x", "", "", "10, 11", "4"}))
      << "a record whose fields are too few has none";
  EXPECT_EQ(examples.unread.size(), 2u);
}

TEST_F(CsvReader, ATableToPredictOfThatIsDividedOtherwiseIsNamed) {
  spec_.delimiter = ';';
  const auto wrong = [&](const std::string& text, const TrainedColumns& trained) {
    return mistakeOf([&] { readCsvExamples(folder_.write("p.csv", text), spec_, 2, &trained); },
                     ErrorCode::kBadConfig, folder_);
  };
  const TrainedColumns two{{"hour", "day"}, {}, 3, {"kind"}};
  EXPECT_NE(wrong("hour,day\n1,2\n", two).find("divided by ',', the job's delimiter is ';'"),
            std::string::npos);
  EXPECT_EQ(wrong("hour;day\n1;2\n", two), "");
  EXPECT_EQ(wrong("hour, day\n1\n", {{"hour, day"}, {}, 2, {"kind"}}), "") << "one column";
}

}  // namespace
}  // namespace dtf::data
