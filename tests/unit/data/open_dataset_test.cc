#include "common/data/open_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/error.h"
#include "common/data/label_check.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::data {
namespace {

TEST(OpenDataset, OpensTheEmbeddedDigits) {
  cluster::DatasetSpec spec;
  spec.count = 600;
  const auto train = openDataset(spec, 7, false);
  EXPECT_EQ(train->size(), 600);
  EXPECT_EQ(train->features().spec().shape, (Shape{28, 28, 1}));
  EXPECT_EQ(classesOf(train->labels()), 10);
  EXPECT_EQ(train->features().bytes().size(), 600u * 784);
  const auto eval = openDataset(spec, 7, true);
  EXPECT_FALSE(std::ranges::equal(train->features().bytes(), eval->features().bytes()));
}

TEST(OpenDataset, RefusesACountOfDigitsOutOfRange) {
  cluster::DatasetSpec spec;
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{1} << 40}) {
    spec.count = count;
    EXPECT_THROW(openDataset(spec, 1, false), Error) << count;
  }
}

TEST(OpenDataset, OpensIdxFiles) {
  const TemporaryFolder folder;
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kIdx;
  spec.images = folder.write("images.gz", gzipped(idxHeader(kImagesMagic, {2, 1, 2}) + "abcd"));
  spec.labels = folder.write("labels", idxHeader(kLabelsMagic, {2}) + std::string("\x00\x0c", 2));
  EXPECT_EQ(openDataset(spec, 1, true)->size(), 2);
}

TEST(OpenDataset, OpensFilesOfCifar10AtTheirPlace) {
  const TemporaryFolder folder;
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kCifar10;
  spec.files = {folder.write("a.bin", std::string(2 * 3073, '\5'))};
  spec.files_marks = {{"job.yaml", 7, 9}};
  EXPECT_EQ(openDataset(spec, 1, true)->size(), 2);
  spec.files = {folder.write("b.bin", std::string(3072, '\5'))};
  try {
    openDataset(spec, 1, true);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_EQ(error.message().find("job.yaml:7:9: error: "), 0u) << error.message();
  }
}

TEST(OpenDataset, AFileThatIsMissingIsNamedWhereTheJobNamesIt) {
  const TemporaryFolder folder;
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kIdx;
  spec.images = folder.path() / "images";
  spec.labels = folder.path() / "labels";
  spec.images_mark = {"t.yaml", 3, 13};
  spec.labels_mark = {"t.yaml", 4, 13};
  const auto failure = [&spec] {
    try {
      openDataset(spec, 1, false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return std::string("no error");
  };
  const std::string missing = ": cannot open it: No such file or directory (2)";
  EXPECT_EQ(failure(), "t.yaml:4:13: error: " + spec.labels.string() + missing);
  folder.write("labels", idxHeader(kLabelsMagic, {1}) + "a");
  EXPECT_EQ(failure(), "t.yaml:3:13: error: " + spec.images.string() + missing);
}

TEST(ReadFeatures, TellsArraysTablesAndImagesApart) {
  const TemporaryFolder folder;
  cluster::DatasetSpec like;  // digits
  const UnlabelledExamples pixels =
      readFeatures(folder.write("a", npyOf<uint8_t>("|u1", "(1, 2)", {1, 2})), like, {2});
  EXPECT_EQ(pixels.features.spec(), (PartSpec{kFeatures, DType::kUInt8, Shape{2}}));
  const UnlabelledExamples images =
      readFeatures(folder.write("b", idxHeader(kImagesMagic, {1, 1, 2}) + "ab"), like, {2});
  EXPECT_EQ(images.features.spec(), (PartSpec{kFeatures, DType::kUInt8, Shape{1, 2}}));
  like.format = cluster::DatasetSpec::Format::kCsv;
  like.csv.label = "kind";
  like.files = {folder.write("t", "x,y,kind\n1,2,0\n")};
  like.files_marks = {{"job.yaml", 5, 9}};
  const UnlabelledExamples table = readFeatures(folder.write("c", "x,y\n1,2\n3,4\n"), like, {2});
  EXPECT_EQ(table.features.count(), 2);
  EXPECT_TRUE(table.files.empty()) << "only of images";
  const UnlabelledExamples array =
      readFeatures(folder.write("d", npyOf<double>("<f8", "(2, 2)", {1, 2, 3, 4})), like, {2});
  EXPECT_EQ(array.features.spec(), (PartSpec{kFeatures, DType::kFloat32, Shape{2}}));
  EXPECT_THROW(readFeatures(folder.write("e", ""), like, {2}), Error);
}

TEST(ReadFeatures, AnArrayOfNumbersIsNoPixels) {
  const TemporaryFolder folder;
  const cluster::DatasetSpec digits;
  try {
    readFeatures(folder.write("a.npy", npyOf<float>("<f4", "(1, 2)", {1, 2})), digits, {2});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), (folder.path() / "a.npy").string() +
                                   ": the elements are float32, but the job's model reads uint8 "
                                   "pixels");
  }
}

TEST(ReadFeatures, AnArrayHasNoColumnsToPrepare) {
  const TemporaryFolder folder;
  const std::filesystem::path array = folder.write("a.npy", npyOf<float>("<f4", "(1, 2)", {1, 2}));
  const auto mistake = [&](const cluster::DatasetSpec& like,
                           const std::optional<DataSignature>& model) -> std::string {
    try {
      readFeatures(array, like, {2}, model);
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  };
  const std::string wanted =
      array.string() +
      ": the model prepares its columns by name (numeric_columns), and an array has no names: give "
      "a CSV file with the columns of the training data";
  cluster::DatasetSpec table;
  table.format = cluster::DatasetSpec::Format::kCsv;
  table.csv.label = "kind";
  table.files = {folder.write("t.csv", "x,y,kind\n1,2,0\n3,4,1\n")};
  table.files_marks = {{"job.yaml", 5, 9}};
  EXPECT_EQ(mistake(table, std::nullopt), "");
  table.csv.numeric.resize(1);
  table.csv.numeric[0].column = "x";
  table.csv.numeric[0].standardize = true;
  EXPECT_EQ(mistake(table, std::nullopt), wanted);

  DataSignature model{"table", true, 3, {{"features", {"x", "y"}}}, {{"labels", {"kind"}}}};
  cluster::DatasetSpec arrays;
  arrays.format = cluster::DatasetSpec::Format::kNpy;
  EXPECT_EQ(mistake(arrays, model), "");
  model.inputs[0].preparation = {Json{{"op", "log1p"}, {"columns", {"x"}}}};
  EXPECT_EQ(mistake(arrays, model), wanted) << "the job has changed to arrays since the training";
}

TEST(ReadFeatures, ColumnsOfATableAreThoseThatAreTrainedOnByName) {
  const TemporaryFolder folder;
  cluster::DatasetSpec train;
  train.format = cluster::DatasetSpec::Format::kCsv;
  train.csv.label = "kind";
  train.files = {folder.write("t.csv", "3,b,kind\n1,2,0\n")};
  train.files_marks = {{"job.yaml", 5, 9}};
  const auto read = [&](const std::string& text) {
    const Part part = readFeatures(folder.write("p.csv", text), train, {2}).features;
    std::vector<float> numbers(part.bytes().size() / sizeof(float));
    std::memcpy(numbers.data(), part.bytes().data(), part.bytes().size());
    return numbers;
  };
  const std::vector<float> wanted = {1, 2};
  EXPECT_EQ(read("3,b\n1,2\n"), wanted);
  EXPECT_EQ(read("b,3\n2,1\n"), wanted);
  EXPECT_EQ(read("kind,b,more,3\nx,2,y,1\n"), wanted) << "others need not be numbers";
  for (const char* text : {"kind,b\n0,2\n", "x,b,y\n1,2,3\n"}) {
    try {
      read(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("it has no column '3', which the model is trained on"),
                std::string::npos)
          << error.message();
    }
  }
}

// A misspelt class in the list would silently drop that class.
TEST(OpenDataset, AClassWithoutAnExampleCanNotBeLearnt) {
  const TemporaryFolder folder;
  cluster::DatasetSpec table;
  table.format = cluster::DatasetSpec::Format::kCsv;
  table.files = {folder.write("t.csv", "a,kind\n1,cat\n2,dog\n")};
  table.files_marks = {{"job.yaml", 5, 9}};
  table.csv.label = "kind";
  table.csv.class_names = {"cat", "dog", "dgo"};
  try {
    openDataset(table, 1, false);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find("1 of the 3 classes has no example to learn from: 'dgo'"),
              std::string::npos)
        << error.message();
  }
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(openDataset(table, 1, true)->size(), 2) << "to evaluate";
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(
                "event=classes_without_examples classes=1 first=\"dgo\""),
            std::string::npos);
}

// A model of pixels predicts from an image file, whatever the format of its training data.
TEST(OpenDataset, ImagesArePredictedByAnyModelOfPixels) {
  const TemporaryFolder folder;
  const std::filesystem::path image =
      folder.write("x", pngOf(4, 4, plain(16, {7}), {PNG_COLOR_TYPE_GRAY}));
  cluster::DatasetSpec like;
  const Part part = readFeatures(image, like, {3, 3}).features;
  EXPECT_EQ(part.spec().shape, (Shape{3, 3, 1}));
  EXPECT_EQ(part.of(0)[8], 7);
  EXPECT_THROW(readFeatures(image, like, {9}), Error);
  like.format = cluster::DatasetSpec::Format::kCsv;
  EXPECT_THROW(readFeatures(image, like, {3, 3}), Error);
}

}  // namespace
}  // namespace dtf::data
