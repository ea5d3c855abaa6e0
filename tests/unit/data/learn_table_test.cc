#include "common/data/learn_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "common/base/error.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"
#include "common/data/table_preparation.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

using cluster::DatasetSpec;
using Fill = cluster::NumericColumn::Fill;
using Words = std::vector<std::string>;

class LearnTable : public ::testing::Test {
 protected:
  DatasetSpec tableOf(const std::string& text) {
    DatasetSpec spec;
    spec.format = DatasetSpec::Format::kCsv;
    spec.files = {folder_.write("t.csv", text)};
    spec.files_marks = {{"job.yaml", 5, 9}};
    spec.csv.label = "kind";
    spec.csv.learns_classes = true;
    return spec;
  }
  std::string mistake(const DatasetSpec& spec) {
    return mistakeOf([&] { learnTable(spec); }, ErrorCode::kBadData, folder_);
  }
  static std::vector<float> features(const DatasetSpec& spec) {
    const auto data = openDataset(spec, 1, false);
    const std::span<const float> all = data->features().as<float>();
    return {all.begin(), all.end()};
  }

  TemporaryFolder folder_;
};

TEST_F(LearnTable, LearnsNumbersOfValuesThatAreThere) {
  DatasetSpec spec = tableOf("a,b,kind\n1,10,x\n,30,y\n3,?,x\n");
  spec.csv.numeric = {{"a", Fill::kMean, 0, true, false, true}, {"b", Fill::kMedian}};
  const DatasetSpec learned = learnTable(spec);
  ASSERT_TRUE(learned.csv.learned);
  const cluster::PreparedColumn& a = learned.csv.learned->features.at(0);
  EXPECT_EQ(a.fill, 2);
  EXPECT_EQ(a.mean, 2);
  EXPECT_EQ(a.stddev, 1);
  EXPECT_EQ(learned.csv.learned->features.at(1).fill, 20);
  EXPECT_EQ(learned.csv.learned->class_names, (Words{"x", "y"}));
  EXPECT_EQ(features(learned), (std::vector<float>{-1, 10, 0, 0, 30, 1, 1, 20, 0}));
  EXPECT_EQ(features(spec), features(learned)) << "what isn't learned yet is learned";
}

// The classes of the last records are none to learn from, so these records are left out. The border
// is at a share of the others: else the numbers of an evaluated record could be learned.
TEST_F(LearnTable, TheBorderOfATimeSplitIsOfTheRecordsThatAreUsed) {
  std::string text = "a,day,kind\n";
  for (int day = 0; day < 8; ++day) text += fmt::format("{0},{0},{1}\n", day, day % 2 ? "x" : "y");
  text += "8,8,z\n9,9,z\n";
  DatasetSpec spec = tableOf(text);
  spec.csv.numeric = {{"a", Fill::kNone, 0, false, false, true}};
  spec.csv.features = {"a"};
  spec.csv.split_by = cluster::SplitBy::kTime;
  spec.csv.split_column = "day";
  spec.csv.max_bad_records = 2;
  spec.split = cluster::EvalSplit{0.25, false, cluster::SplitBy::kTime};
  const DatasetSpec learned = learnTable(spec);
  EXPECT_EQ(learned.csv.learned->class_names, (Words{"x", "y"}));
  EXPECT_EQ(openDataset(learned, 1, false)->size(), 6) << "days 0 to 5 of the 8 that are used";
  EXPECT_EQ(learned.csv.learned->features.at(0).mean, 2.5) << "of these days, and no other";
}

// 20 000 columns: work that grows with their square would take a minute.
TEST_F(LearnTable, AWideTableIsPreparedInTimeThatGrowsWithItsColumns) {
  constexpr int kColumns = 20'000;
  std::string names, one, two;
  for (int i = 0; i < kColumns; ++i) {
    names += fmt::format("a_column_with_a_long_name_{},", i);
    one += "1,";
    two += "3,";
  }
  DatasetSpec spec = tableOf(names + "kind\n" + one + "x\n" + two + "y\n");
  spec.csv.numeric = {{"*", Fill::kNone, 0, false, false, true}};
  for (int i = 0; i < 4000; ++i)
    spec.csv.numeric.push_back({fmt::format("a_column_with_a_long_name_{}", i), Fill::kMean});
  std::ranges::sort(spec.csv.numeric, {}, &cluster::NumericColumn::column);
  const auto begin = std::chrono::steady_clock::now();
  const DatasetSpec learned = learnTable(spec);
  const DataSignature signature = readSignature(learned);
  EXPECT_EQ(preparedFeatures(signature).size(), static_cast<size_t>(kColumns));
  EXPECT_EQ(features(readAsTrained(spec, signature)).size(), 2U * kColumns);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(LearnTable, CountsTheWordsOfFields) {
  DatasetSpec spec = tableOf("a,tags,kind\n1,red|big|red,x\n2,,y\n3,big|new|red,x\n");
  cluster::CategoricalColumns tags{"tags", {"tags"}, 0, {}, 1, {}, 2, 2};
  tags.split = '|';
  tags.max_words = 3;
  spec.csv.categorical = {tags};
  const DatasetSpec learned = learnTable(spec);
  EXPECT_EQ(learned.csv.learned->words.at(0), (Words{"red", "big"})) << "'new' occurs once";
  const auto data = openDataset(learned, 1, false);
  const std::span<const int32_t> numbers = data->categories()[0].as<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(numbers.begin(), numbers.end()),
            (std::vector<int32_t>{1, 2, 1, 0, 0, 0, 2, 3, 1}));
}

TEST_F(LearnTable, ClassesAreSortedNumbersBeforeWords) {
  const auto classes = [&](const std::string& text) {
    return learnTable(tableOf("a,kind\n" + text)).csv.learned->class_names;
  };
  EXPECT_EQ(classes("1,10\n1,9.0\n1,-1\n1,9\n"), (Words{"-1", "9", "10"}));
  EXPECT_EQ(classes("1,True\n1,False\n"), (Words{"False", "True"}));
  EXPECT_EQ(classes("1,b\n1,7\n1,a\n"), (Words{"7", "a", "b"}));
}

TEST_F(LearnTable, AVocabularyHasTheMostFrequentWordsFirst) {
  DatasetSpec spec =
      tableOf("a,city,kind\n1,rome,x\n1,york,x\n1,york,y\n1,bonn,x\n1,oslo,x\n1,bonn,x\n1,,y\n");
  spec.csv.categorical = {{"place", {"city"}, 0, {}, 1, {}, 2, 1}};
  const DatasetSpec learned = learnTable(spec);
  EXPECT_EQ(learned.csv.learned->words, (std::vector<Words>{{"bonn", "york"}}));
  const auto data = openDataset(learned, 1, false);
  const std::span<const int32_t> numbers = data->categories()[0].as<int32_t>();
  EXPECT_EQ((std::vector<int32_t>{numbers.begin(), numbers.end()}),
            (std::vector<int32_t>{2, 1, 1, 0, 2, 0, 2}));
  spec.csv.categorical[0].learned_min_count = 3;
  EXPECT_NE(mistake(spec).find("no word of 'place' occurs 3 times"), std::string::npos);
}

TEST_F(LearnTable, OnlyExamplesToTrainOnCount) {
  std::string text = "a,kind\n";
  for (int i = 0; i < 200; ++i) text += std::to_string(i) + (i % 2 == 0 ? ",x\n" : ",y\n");
  DatasetSpec spec = tableOf(text);
  spec.csv.numeric = {{"a", Fill::kNone, 0, false, false, true}};
  const double all = learnTable(spec).csv.learned->features[0].mean;
  spec.split = cluster::EvalSplit{0.5, false};
  const DatasetSpec learned = learnTable(spec);
  EXPECT_NE(learned.csv.learned->features[0].mean, all);
  double sum = 0;
  const std::vector<float> train = features(learned);
  for (const float value : train) sum += value;
  EXPECT_NEAR(sum / static_cast<double>(train.size()), 0, 1e-6);
  DatasetSpec eval = learned;
  eval.split->evaluates = true;
  EXPECT_EQ(features(eval).size() + train.size(), 200u);
  EXPECT_EQ(learnTable(eval).csv.learned->features[0].mean, learned.csv.learned->features[0].mean)
      << "the other side has the numbers of the side to train on";
}

TEST_F(LearnTable, WithoutAnythingToLearnFromThereIsAMistake) {
  DatasetSpec spec = tableOf("a,kind\n,x\n,y\n");
  spec.csv.numeric = {{"a", Fill::kMean}};
  EXPECT_NE(mistake(spec).find("column 'a' has no value in the training data"), std::string::npos);
  EXPECT_NE(mistake(tableOf("a,kind\n1,x\n2,x\n")).find("all labels to train on are 'x'"),
            std::string::npos);
  EXPECT_NE(mistake(tableOf("a,kind\n1,\xe9\n2,x\n")).find("is not UTF-8"), std::string::npos);
  EXPECT_NE(mistake(tableOf("a,kind\n1,x\n2,\n")).find("is a missing value"), std::string::npos);
}

TEST_F(LearnTable, NumbersWithoutLogarithmAreBadRecords) {
  DatasetSpec spec = tableOf("a,kind\n1,x\n-2,y\n");
  spec.csv.numeric = {{"a", Fill::kNone, 0, false, true}};
  EXPECT_NE(mistake(spec).find("t.csv:3:1: '-2' in column 'a' has no log1p"), std::string::npos);
}

}  // namespace
}  // namespace dtf::data
