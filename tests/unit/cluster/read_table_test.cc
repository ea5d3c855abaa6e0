// The keys of tables in text.

#include "common/cluster/read_table.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "tests/unit/cluster/train_of.h"

namespace dtf::cluster {
namespace {

using Fill = NumericColumn::Fill;

// A table with these keys to train on, and others to evaluate on.
DataSpec dataOf(const std::string& train, const std::string& eval = "") {
  const std::string begin = "{format: csv, files: [a.csv], delimiter: ';', label_column: kind";
  return trainOf("data:\n  train: " + begin + train + "}\n" +
                 (eval.empty() ? "" : "  eval: " + begin + (eval == "-" ? "" : eval) + "}\n"))
      .data;
}

std::string mistakeOf(const std::string& train, const std::string& eval = "") {
  try {
    dataOf(train, eval);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(ReadTable, ReadsThePreparationOfColumnsInOrderOfName) {
  const CsvSpec csv =
      dataOf(
          ", numeric_columns: {income: {log1p: true, standardize: true, fill: 0.5}, "
          "age: {fill: median, missing_indicator: true}, '*': {fill: mean}}")
          .train.csv;
  ASSERT_EQ(csv.numeric.size(), 3u);
  EXPECT_EQ(csv.numeric[0].column, "*");
  EXPECT_EQ(csv.numeric[0].fill, Fill::kMean);
  EXPECT_EQ(csv.numeric[1].fill, Fill::kMedian);
  EXPECT_TRUE(csv.numeric[1].missing_indicator);
  EXPECT_FALSE(csv.numeric[1].standardize);
  EXPECT_EQ(csv.numeric[2].fill, Fill::kValue);
  EXPECT_EQ(csv.numeric[2].fill_value, 0.5);
  EXPECT_TRUE(csv.numeric[2].log1p && csv.numeric[2].standardize);
  EXPECT_TRUE(csv.learns());
  EXPECT_FALSE(dataOf(", numeric_columns: {age: {fill: -1, log1p: false}}").train.csv.learns())
      << "nothing comes from the data";
}

TEST(ReadTable, ReadsWordsAndClassesThatAreLearned) {
  const CsvSpec csv =
      dataOf(
          ", class_names: {from: data}, categorical_columns: {city: {columns: [city], vocabulary: "
          "{from: data, max_size: 50, min_count: 3}}}")
          .train.csv;
  EXPECT_TRUE(csv.learns_classes && csv.learns());
  EXPECT_EQ(csv.categorical[0].learned_max_size, 50);
  EXPECT_EQ(csv.categorical[0].learned_min_count, 3);
  EXPECT_EQ(csv.categorical[0].num_oov_buckets, 1) << "other words need a row";
  EXPECT_EQ(csv.categorical[0].input().below, 51);
  EXPECT_EQ(csv.decimal, '.');
  EXPECT_EQ(dataOf(", decimal: comma").train.csv.decimal, ',');
}

TEST(ReadTable, TheEvaluationIsPreparedAsTheTrainingData) {
  const std::string keys =
      ", class_names: {from: data}, numeric_columns: {age: {standardize: true}}";
  const DataSpec data = dataOf(keys, "-");
  EXPECT_TRUE(data.eval->csv.learns_classes);
  EXPECT_EQ(data.eval->csv.numeric.at(0).column, "age");
  EXPECT_NE(mistakeOf(keys, ", numeric_columns: {age: {log1p: true}}")
                .find("leave 'numeric_columns' "
                      "out here"),
            std::string::npos);
  EXPECT_NE(mistakeOf(keys, ", class_names: [a, b]").find("leave 'class_names' out here"),
            std::string::npos);
}

TEST(ReadTable, MistakesHaveTheirRemedies) {
  const auto expect = [](const std::string& keys, const std::string& text) {
    EXPECT_NE(mistakeOf(keys).find(text), std::string::npos) << mistakeOf(keys);
  };
  expect(", numeric_columns: {age: {fill: medain}}", "did you mean 'median'?");
  expect(", numeric_columns: {age: {fill: 1x}}", "fill");
  expect(", numeric_columns: {age: {standardise: true}}", "did you mean 'standardize'?");
  expect(", numeric_columns: {}", "from 1 to 4096 columns");
  expect(", numeric_columns: {age: {missing_indicator: true}}",
         "'missing_indicator' needs a 'fill'");
  expect(", numeric_columns: {age: {log1p: true, fill: -1}}", "above -1");
  expect(", categorical_columns: {c: {columns: [c], vocabulary: {}}}", "missing key 'from'");
  expect(
      ", categorical_columns: {c: {columns: [c], hash_bucket_size: 5, vocabulary: {from: data}}}",
      "'vocabulary' excludes");
  expect(", class_names: {from: file}", "unknown from 'file' (one of data)");
  expect(", decimal: komma", "did you mean 'comma'?");
}

TEST(ReadTable, ACommaCantBeBothInNumbersAndBetweenThem) {
  try {
    trainOf("data: {train: {format: csv, files: [a.csv], label_column: k, decimal: comma}}\n");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("set 'delimiter'"), std::string::npos) << error.message();
  }
}

TEST(ReadTable, ReadsBucketsAndSplitsByAColumn) {
  const CsvSpec csv =
      dataOf(", categorical_columns: {age: {columns: [age], buckets: [18, 65.5]}}").train.csv;
  EXPECT_EQ(csv.categorical[0].buckets, (std::vector<double>{18, 65.5}));
  EXPECT_EQ(csv.categorical[0].input().meaning, "buckets=[18, 65.5]");
  EXPECT_NE(mistakeOf(", categorical_columns: {a: {columns: [a], buckets: [3, 3]}}").find("ascend"),
            std::string::npos);
  const auto split = [](const std::string& keys) {
    return trainOf("data: {train: {format: csv, files: [a.csv], label_column: kind}, eval_split: " +
                   keys + "}\n")
        .data;
  };
  const DataSpec by_user = split("{fraction: 0.3, by: group, column: user}");
  ASSERT_TRUE(by_user.eval && by_user.eval->split && by_user.train.split);
  EXPECT_EQ(by_user.train.split->fraction, 0.3);
  EXPECT_EQ(by_user.eval->split->by, SplitBy::kGroup);
  EXPECT_EQ(by_user.eval->csv.split_column, "user");
  EXPECT_EQ(split("0.3").train.split->by, SplitBy::kHash);
  for (const char* keys : {"{fraction: 0.3, by: time}", "{by: time, column: t}", "{fraction: 2}",
                           "{fraction: 0.3, column: t}"})
    EXPECT_THROW(split(keys), Error) << keys;
}

}  // namespace
}  // namespace dtf::cluster
