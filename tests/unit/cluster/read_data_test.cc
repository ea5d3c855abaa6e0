// `data:` of a TRAIN.yaml.

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/cluster/train_of.h"

namespace dtf::cluster {
namespace {

TEST(ReadData, WhatTheModelReadsFollowsFromTheFormatOfTheData) {
  const auto types = [](const std::string& train) {
    const model::ModelSpec model = trainOf("data: {train: {" + train + "}}\n").model;
    return std::pair(model.input_dtype, model.labels_dtype);
  };
  const auto pair = [](DType features, DType labels) { return std::pair(features, labels); };
  EXPECT_EQ(types("format: digits"), pair(DType::kUInt8, DType::kUInt8));
  EXPECT_EQ(types("format: synthetic, problem: friedman"), pair(DType::kFloat32, DType::kFloat32));
  EXPECT_EQ(types("format: synthetic, problem: linear"), pair(DType::kFloat32, DType::kInt32));
  EXPECT_EQ(types("format: csv, files: [a], label_column: l"),
            pair(DType::kFloat32, DType::kInt32));
  EXPECT_EQ(types("format: csv, files: [a], target_columns: [t]"),
            pair(DType::kFloat32, DType::kFloat32));
  EXPECT_EQ(types("format: npy, features: f, labels: l, features_as: pixels"),
            pair(DType::kUInt8, DType::kInt32));
  EXPECT_EQ(types("format: npz, archive: a, features: f, targets: t, features_as: indices"),
            pair(DType::kInt32, DType::kFloat32));
}

TEST(ReadData, ReadsWhatBecomesOfImagesAndHowOftenTheyAreRead) {
  const TrainSpec train =
      trainOf("epochs: 3\ndata: {augment: {flip_horizontal: true, crop_padding: 4}}\n");
  EXPECT_EQ(train.epochs, 3u);
  EXPECT_TRUE(train.data.augment.flip_horizontal);
  EXPECT_EQ(train.data.augment.crop_padding, 4);
  EXPECT_EQ(train.data.augment.text(), "flip_horizontal=true crop_padding=4");
  EXPECT_FALSE(trainOf("").data.augment.any());
}

TEST(ReadData, ReadsTheSettingsOfTables) {
  const DatasetSpec csv = trainOf(
                              "data: {train: {format: csv, files: [a.csv, b.csv], header: "
                              "false, delimiter: tab, label_column: 3, feature_columns: [1, "
                              "x], class_names: [u, v], max_bad_records: 7}}\n")
                              .data.train;
  EXPECT_EQ(csv.files.size(), 2u);
  EXPECT_FALSE(csv.csv.header);
  EXPECT_EQ(csv.csv.delimiter, '\t');
  EXPECT_EQ(csv.csv.label, "3");
  EXPECT_EQ(csv.csv.features, (std::vector<std::string>{"1", "x"}));
  EXPECT_EQ(csv.csv.class_names, (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(csv.csv.max_bad_records, 7);
  const DatasetSpec npz =
      trainOf("data: {train: {format: npz, archive: d.npz, features: f, targets: t}}\n").data.train;
  EXPECT_EQ(npz.npy.archive.path.filename(), "d.npz");
  EXPECT_EQ(npz.npy.features.path, "f") << "the name of an array is no path";
  EXPECT_EQ(npz.npy.targets.path, "t");
}

TEST(ReadData, TheEmbeddedDigitsAreTheDefaultData) {
  const DataSpec data = trainOf("").data;
  EXPECT_EQ(data.train.format, DatasetSpec::Format::kDigits);
  EXPECT_EQ(data.train.count, 10000);
  ASSERT_TRUE(data.eval);
  EXPECT_EQ(data.eval->count, 2000);
  EXPECT_EQ(trainOf("data: {batch_size: 7}\n").data.eval->count, 2000);
  EXPECT_EQ(trainOf("data: {eval: {format: digits, count: 5}}\n").data.eval->count, 5);
  EXPECT_FALSE(trainOf("data: {train: {format: digits}}\n").data.eval);
  EXPECT_EQ(trainOf("data: {train: {format: digits}, eval: {format: digits}}\n").data.eval->count,
            2000);
}

TEST(ReadData, ATableThatIsPreparedNeedsATableToEvaluate) {
  const auto first_line = [](const std::string& keys, const std::string& eval) -> std::string {
    try {
      trainOf("data:\n  train: {format: csv, files: [a.csv], label_column: kind" + keys +
              "}\n  eval: {format: " + eval + "}\n");
      return "";
    } catch (const Error& error) {
      return error.message().substr(0, error.message().find('\n'));
    }
  };
  const std::string numeric = ", numeric_columns: {age: {standardize: true}}";
  const std::string classes = ", class_names: {from: data}";
  const std::string npy = "npy, features: f.npy, labels: l.npy";
  const std::string npz = "npz, archive: d.npz, features: f, labels: l";
  const std::string table = "csv, files: [b.csv], label_column: kind";
  const std::string needs =
      ", which needs a table here, too: set 'format: csv' and give files with the same columns";
  for (const std::string& arrays : {npy, npz}) {
    EXPECT_EQ(first_line("", arrays), "");
    EXPECT_EQ(
        first_line(numeric, arrays),
        "t.yaml:9:18: error: data.train prepares its columns by name ('numeric_columns')" + needs);
    EXPECT_EQ(
        first_line(classes, arrays),
        "t.yaml:9:18: error: data.train learns its classes ('class_names: {from: data}')" + needs);
  }
  EXPECT_EQ(first_line(numeric + classes, table), "");
}

// Nothing would use it.
TEST(ReadData, ATableToEvaluateHasNoPreparationOfItsOwn) {
  const auto first_line = [](const std::string& keys) -> std::string {
    try {
      trainOf(
          "data:\n  train: {format: npy, features: f.npy, labels: l.npy}\n"
          "  eval: {format: csv, files: [b.csv], label_column: kind" +
          keys + "}\n");
      return "";
    } catch (const Error& error) {
      return error.message().substr(0, error.message().find('\n'));
    }
  };
  EXPECT_EQ(first_line(""), "");
  EXPECT_EQ(first_line(", class_names: [a, b]"), "");
  EXPECT_EQ(first_line(", numeric_columns: {age: {standardize: true}}"),
            "t.yaml:9:59: error: data.train is no table, so the model prepares no columns: leave "
            "'numeric_columns' out here, and give numbers as they are in data.train");
  EXPECT_EQ(first_line(", class_names: {from: data}"),
            "t.yaml:9:59: error: the classes are data.train's, which is no table, and learns none: "
            "leave 'class_names' out here, or list the words from class 0 on");
}

TEST(ReadData, LibsvmFilesHaveTheShapeOfTheModel) {
  const TrainSpec train = trainOf(
      "data: {train: {format: libsvm, files: [a.svm], zero_based: true, class_names: ['1', '2'], "
      "max_bad_records: 3}}\n");
  const DatasetSpec& data = train.data.train;
  EXPECT_EQ(data.libsvm.shape, train.model.input_shape);
  EXPECT_TRUE(data.libsvm.zero_based);
  EXPECT_EQ(data.csv.class_names.size(), 2u);
  EXPECT_EQ(data.csv.max_bad_records, 3);
  EXPECT_EQ(data.featuresType(), DType::kFloat32);
  EXPECT_EQ(data.labelsType(), DType::kInt32);
  const auto failure = [](const std::string& keys) -> std::string {
    try {
      trainOf("data: {train: {format: libsvm, files: [a.svm], " + keys + "}}\n");
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_NE(failure("class_names: {from: data}").find("format libsvm doesn't learn its classes"),
            std::string::npos);
  EXPECT_NE(failure("labels_as: targets, class_names: ['1']").find("which have no 'class_names'"),
            std::string::npos);
  EXPECT_NE(failure("label_column: y").find("'label_column' has no meaning for format libsvm"),
            std::string::npos);
}

TEST(ReadData, ASplitIsTheTrainingDataTwice) {
  const DataSpec data = trainOf(
                            "data: {train: {format: npz, archive: d.npz, features: f, labels: "
                            "l}, eval_split: 0.25}\n")
                            .data;
  ASSERT_TRUE(data.train.split && data.eval && data.eval->split);
  EXPECT_EQ(data.train.split->fraction, 0.25);
  EXPECT_FALSE(data.train.split->evaluates);
  EXPECT_EQ(data.eval->split->fraction, 0.25);
  EXPECT_TRUE(data.eval->split->evaluates);
  EXPECT_EQ(data.eval->npy.archive.path, data.train.npy.archive.path);
  EXPECT_FALSE(trainOf("data: {train: {format: npz, archive: d, features: f, labels: l}}\n")
                   .data.train.split);
}

}  // namespace
}  // namespace dtf::cluster
