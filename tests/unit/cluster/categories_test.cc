// What examples have beside their features, as the file says it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"

namespace dtf::cluster {
namespace {

// With these data to train on.
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
  EXPECT_EQ(read[0].hash_bucket_size, 1000);
  EXPECT_EQ(read[1].columns, (std::vector<std::string>{"g1", "g2"}));
  EXPECT_EQ(read[1].vocabulary_list, (std::vector<std::string>{"drama", "comedy"}));
  EXPECT_EQ(train.model.categories, (std::vector<model::CategoryInput>{
                                        {"user", 1, 1000}, {"genre", 2, 2}, {"item", 1, 0}}));
  EXPECT_FALSE(train.model.features_are_categories);
  const TrainSpec alone = trainWith(
      "{format: csv, files: [a.csv], target_columns: [rating], feature_columns: [], "
      "categorical_columns: {user: {columns: [uid]}}}");
  EXPECT_TRUE(alone.model.features_are_categories);
  EXPECT_EQ(alone.model.input_dtype, DType::kInt32);
  const TrainSpec arrays = trainWith(
      "{format: npz, archive: a.npz, features: x, labels: y, categorical_arrays: "
      "{user: {array: u}, slots: {array: s, count: 26}}}");
  EXPECT_EQ(arrays.data.train.npy.categorical[0].array.path, "u") << "the name of an array";
  EXPECT_EQ(arrays.model.categories,
            (std::vector<model::CategoryInput>{{"user", 1, 0}, {"slots", 26, 0}}));
  EXPECT_EQ(trainWith("{format: synthetic, problem: clicks}").model.categories,
            (std::vector<model::CategoryInput>{{"user", 1, 1000}, {"item", 1, 500}}));
}

}  // namespace
}  // namespace dtf::cluster
