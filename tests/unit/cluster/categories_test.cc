// The file's inputs beside the features: categories.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/model/model_text.h"
#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"

namespace dtf::cluster {
namespace {

// A job that trains on these data.
TrainSpec trainWith(const std::string& data) {
  const testing::TemporaryFiles files;
  files.write(
      "t.yaml",
      "model: {input: {shape: [2]}, layers: [dense: {units: 2}], loss: mse}\ndata: {train: " +
          data + "}\n");
  return testing::readTrainFile("t.yaml");
}

TEST(Categories, AreInputsOfTheModelByTheirNames) {
  const TrainSpec train = trainWith(
      "{format: csv, files: [a.csv], label_column: click, categorical_columns: "
      "{user: {columns: [uid], hash_bucket_size: 1000}, genre: {columns: [g1, g2], "
      "vocabulary_list: [drama, comedy]}, item: {columns: [4]}}}");
  const std::vector<CategoricalColumns>& read = train.data.train.csv.categorical;
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "genre") << "in order of name, whatever that of the file";
  EXPECT_EQ(read[0].columns, (std::vector<std::string>{"g1", "g2"}));
  EXPECT_EQ(read[0].vocabulary_list, (std::vector<std::string>{"drama", "comedy"}));
  EXPECT_EQ(read[2].hash_bucket_size, 1000);
  const std::vector<model::CategoryInput>& inputs = train.model.categories;
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].count, 2);
  EXPECT_EQ(inputs[0].below, 2);
  EXPECT_EQ(inputs[1], (model::CategoryInput{"item", 1}));
  EXPECT_EQ(inputs[2], (model::CategoryInput{"user", 1, 1000, "hash_bucket_size=1000"}));
  EXPECT_FALSE(train.model.features_are_categories);
  const TrainSpec alone = trainWith(
      "{format: csv, files: [a.csv], target_columns: [rating], feature_columns: [], "
      "categorical_columns: {user: {columns: [uid]}}}");
  EXPECT_TRUE(alone.model.features_are_categories);
  EXPECT_EQ(alone.model.input_dtype, DType::kInt32);
  const TrainSpec arrays = trainWith(
      "{format: npz, archive: a.npz, features: x, labels: y, categorical_arrays: "
      "{user: {array: u}, slots: {array: s, count: 26}}}");
  EXPECT_EQ(arrays.data.train.npy.categorical[1].array.path, "u") << "the name of an array";
  EXPECT_EQ(arrays.model.categories,
            (std::vector<model::CategoryInput>{{"slots", 26}, {"user", 1}}));
  EXPECT_EQ(trainWith("{format: synthetic, problem: clicks}").model.categories,
            (std::vector<model::CategoryInput>{{"item", 1, 500}, {"user", 1, 1000}}));
}

TEST(Categories, AFieldMayHoldSeveralWords) {
  const std::string words = "vocabulary_list: [drama, comedy], ";
  const TrainSpec train = trainWith(
      "{format: csv, files: [a.csv], label_column: click, categorical_columns: {genre: {columns: "
      "[g1, g2], " +
      words + "split: '|', max_words: 3}}}");
  const model::CategoryInput& input = train.model.categories.at(0);
  EXPECT_EQ(input.count, 6) << "three of each column";
  EXPECT_EQ(input.below, 3) << "0 is no word";
  EXPECT_TRUE(input.is_padded);
  EXPECT_NE(model::categoryText(input).find(" split=| max_words=3"), std::string::npos)
      << model::categoryText(input);
}

TEST(Categories, SeveralWordsNeedAWayToNumbers) {
  const auto failure = [](const std::string& keys) -> std::string {
    try {
      trainWith(
          "{format: csv, files: [a.csv], label_column: click, categorical_columns: {genre: "
          "{columns: [g], " +
          keys + "}}}");
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_NE(failure("split: '|'").find("'split' divides a field into words, and needs a key"),
            std::string::npos)
      << failure("split: '|'");
  EXPECT_NE(failure("hash_bucket_size: 5, max_words: 3").find("set 'split' to what divides them"),
            std::string::npos);
  EXPECT_NE(failure("hash_bucket_size: 5, split: ab").find("'split' is one character"),
            std::string::npos);
  EXPECT_NE(failure("buckets: [1, 2], split: '|'").find("'split' divides a field into words"),
            std::string::npos);
}

// The rows of a trained table belong to the words behind its numbers.
TEST(Categories, TheirMeaningIsPartOfTheModel) {
  const auto text = [](const std::string& words) {
    return model::inputText(
        trainWith("{format: csv, files: [a], label_column: l, categorical_columns: {c: {columns: "
                  "[x], " +
                  words + "}}}")
            .model);
  };
  const std::string list = text("vocabulary_list: [a, b]");
  EXPECT_EQ(text("hash_bucket_size: 9"), "float32 [2] c[1 hash_bucket_size=9]");
  EXPECT_NE(text("hash_bucket_size: 9"), text("hash_bucket_size: 8"));
  EXPECT_NE(list, text("vocabulary_list: [b, a]"));
  EXPECT_NE(list, text("vocabulary_list: [ab]"));
  EXPECT_NE(list, text("vocabulary_list: [a, b], num_oov_buckets: 3"));
  EXPECT_EQ(list, text("vocabulary_list: ['a', b]"));
}

}  // namespace
}  // namespace dtf::cluster
