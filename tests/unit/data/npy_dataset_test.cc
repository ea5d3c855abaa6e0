#include "common/data/npy_dataset.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::data {
namespace {

using cluster::FeaturesAs;

class NpyDataset : public ::testing::Test {
 protected:
  NpyDataset() {
    spec_.format = cluster::DatasetSpec::Format::kNpy;
    spec_.npy.features = {folder_.path() / "x.npy", {"job.yaml", 3, 7}};
    spec_.npy.labels = {folder_.path() / "y.npy", {"job.yaml", 4, 7}};
    x(npyOf<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6}));
    y(npyOf<int64_t>("<i8", "(2,)", {7, 300}));
  }
  void x(const std::string& bytes) { folder_.write("x.npy", bytes); }
  void y(const std::string& bytes) { folder_.write("y.npy", bytes); }
  void wantTargets() { std::swap(spec_.npy.labels, spec_.npy.targets); }

  std::string mistake(ErrorCode code = ErrorCode::kBadData) {
    return mistakeOf([this] { readNpyDataset(spec_); }, code, folder_);
  }

  TemporaryFolder folder_;
  cluster::DatasetSpec spec_;
};

TEST_F(NpyDataset, ReadsFeaturesAndClasses) {
  const Dataset dataset = readNpyDataset(spec_);
  EXPECT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.features().spec(), (PartSpec{kFeatures, DType::kFloat32, Shape{3}}));
  EXPECT_EQ(dataset.features().as<float>()[5], 6);
  EXPECT_EQ(dataset.labels().as<int32_t>()[1], 300);
  const NpyParts parts = readNpyParts(spec_);
  EXPECT_EQ(parts.count, 2);
  EXPECT_EQ(parts.features, dataset.features().spec());
  EXPECT_EQ(parts.labels, dataset.labels().spec());
}

TEST_F(NpyDataset, ReadsTargetsOfAnyWidthAndType) {
  wantTargets();
  x(npyOf<double>("<f8", "(2,)", {0.5, -1}));
  y(npyOf<int32_t>("<i4", "(2, 2)", {1, 2, 3, 4}));
  const Dataset dataset = readNpyDataset(spec_);
  EXPECT_EQ(dataset.features().spec().shape, Shape()) << "features of rank 0";
  EXPECT_EQ(dataset.features().as<float>()[1], -1);
  EXPECT_EQ(dataset.labels().spec(), (PartSpec{kLabels, DType::kFloat32, Shape{2}}));
  EXPECT_EQ(dataset.labels().as<float>()[3], 4);
}

TEST_F(NpyDataset, ReadsCategoriesBesideTheFeatures) {
  folder_.write("user.npy", npyOf<int64_t>("<i8", "(2,)", {70'000, 3}));
  folder_.write("tags.npy", npyOf<int32_t>("<i4", "(2, 3)", {1, 2, 3, 4, 5, 6}));
  spec_.npy.categorical = {{"user", {folder_.path() / "user.npy", {"job.yaml", 5, 7}}, 1},
                           {"tags", {folder_.path() / "tags.npy", {"job.yaml", 6, 7}}, 3}};
  const Dataset dataset = readNpyDataset(spec_);
  ASSERT_EQ(dataset.categories().size(), 2u);
  EXPECT_EQ(dataset.categories()[0].spec(), (PartSpec{"user", DType::kInt32, Shape{1}}));
  EXPECT_EQ(dataset.categories()[0].as<int32_t>()[0], 70'000);
  EXPECT_EQ(dataset.categories()[1].as<int32_t>()[5], 6);
  EXPECT_EQ(readNpyParts(spec_).count, 2) << "their headers fit";
}

TEST_F(NpyDataset, CategoriesThatDoNotFitAreNamed) {
  const auto mistakeWith = [this](const std::string& bytes, int64_t count,
                                  ErrorCode code = ErrorCode::kBadData) {
    folder_.write("c.npy", bytes);
    spec_.npy.categorical = {{"user", {folder_.path() / "c.npy", {"job.yaml", 5, 7}}, count}};
    EXPECT_THROW(readNpyParts(spec_), Error) << "the headers alone show it";
    return mistake(code);
  };
  EXPECT_EQ(mistakeWith(npyOf<int32_t>("<i4", "(3,)", {1, 2, 3}), 1),
            "job.yaml:5:7: error: c.npy: 3 examples, but the features have 2: the two arrays "
            "don't belong together");
  EXPECT_EQ(mistakeWith(npyOf<int32_t>("<i4", "(2, 2)", {1, 2, 3, 4}), 3),
            "job.yaml:5:7: error: c.npy: each example has [2], but 'count' of user is 3");
  EXPECT_EQ(mistakeWith(npyOf<float>("<f4", "(2,)", {1, 2}), 1, ErrorCode::kBadConfig),
            "job.yaml:5:7: error: c.npy: the elements are float32, but categories are whole "
            "numbers: save them with a.astype('int64')");
}

TEST_F(NpyDataset, ANegativeCategoryIsBadData) {
  folder_.write("c.npy", npyOf<int32_t>("<i4", "(2,)", {1, -2}));
  spec_.npy.categorical = {{"user", {folder_.path() / "c.npy", {"job.yaml", 5, 7}}, 1}};
  EXPECT_EQ(mistake(),
            "job.yaml:5:7: error: c.npy: example 1 has -2, which is no whole number from 0 to "
            "2147483647");
}

TEST_F(NpyDataset, BytesArePixelsOrNumbersAsTheJobSays) {
  x(npyOf<uint8_t>("|u1", "(2, 1, 1, 3)", {0, 128, 255, 1, 2, 3}));
  EXPECT_EQ(mistake(ErrorCode::kBadConfig),
            "job.yaml:3:7: error: x.npy: are these bytes pixels? Say 'features_as: pixels' (the "
            "model divides them by 255) or 'features_as: float32' (as they are)");
  spec_.npy.features_as = FeaturesAs::kPixels;
  EXPECT_EQ(readNpyDataset(spec_).features().spec(),
            (PartSpec{kFeatures, DType::kUInt8, Shape{1, 1, 3}}));
  spec_.npy.features_as = FeaturesAs::kFloat32;
  EXPECT_EQ(readNpyDataset(spec_).features().as<float>()[1], 128);
  spec_.npy.features_as = FeaturesAs::kIndices;
  EXPECT_EQ(readNpyDataset(spec_).features().as<int32_t>()[2], 255);
}

// As indices, only numbers that are certainly whole are accepted.
TEST_F(NpyDataset, FloatsThatAreWholeNumbersMayNameRows) {
  spec_.npy.features_as = FeaturesAs::kIndices;
  x(npyOf<double>("<f8", "(2,)", {16777217, 2147483647}));
  EXPECT_EQ(readNpyDataset(spec_).features().as<int32_t>()[0], 16777217);
  EXPECT_EQ(readNpyDataset(spec_).features().as<int32_t>()[1], 2147483647);
  for (const double number : {0.5, -1.0, 2147483648.0}) {
    x(npyOf<double>("<f8", "(2,)", {1, number}));
    EXPECT_NE(mistake().find("which is no whole number from 0"), std::string::npos) << number;
  }
  x(npyOf<float>("<f4", "(2,)", {16777215, 1}));
  EXPECT_EQ(readNpyDataset(spec_).features().as<int32_t>()[0], 16777215);
  x(npyOf<float>("<f4", "(2,)", {16777216, 1}));
  EXPECT_NE(mistake().find("from 16777216 on it lacks some"), std::string::npos)
      << "it may have been 16777217";
}

TEST_F(NpyDataset, ANumberThatWouldBecomeAnotherIsBadData) {
  y(npyOf<int64_t>("<i8", "(2,)", {1, int64_t{1} << 31}));
  EXPECT_EQ(mistake(),
            "job.yaml:4:7: error: y.npy: example 1 has 2147483648, which is no whole number from 0 "
            "to 2147483647, as classes are: number them, as np.unique(a, return_inverse=True)[1] "
            "does");
  y(npyOf<int64_t>("<i8", "(2,)", {1, -1}));
  EXPECT_NE(mistake(), "");
  y(npyOf<uint8_t>("|u1", "(2,)", {1, 2}));
  x(npyOf<double>("<f8", "(2, 2)", {1, 2, 3, 1e300}));
  EXPECT_EQ(mistake(),
            "job.yaml:3:7: error: x.npy: example 1 has 1e+300, which is no number that a float32 "
            "holds");
  x(npyOf<int32_t>("<i4", "(2,)", {1, (1 << 24) + 1}));
  EXPECT_NE(mistake(), "");
  x(npyOf<float>("<f4", "(2,)", {1, std::stof("inf")}));
  EXPECT_NE(mistake(), "");
}

TEST_F(NpyDataset, ArraysThatDoNotBelongTogetherAreNamed) {
  y(npyOf<int32_t>("<i4", "(3,)", {1, 2, 3}));
  EXPECT_EQ(mistake(),
            "job.yaml:4:7: error: y.npy: 3 examples, but x.npy has 2: the two arrays don't belong "
            "together");
  y(npyOf<int32_t>("<i4", "(2, 2)", {1, 2, 3, 4}));
  EXPECT_EQ(mistake(),
            "job.yaml:4:7: error: y.npy: the array has 2 dimensions, labels have 1: of one-hot "
            "labels save a.argmax(1); numbers to learn are named by 'targets'");
  y(npyOf<float>("<f4", "(2, 2)", {1, 0, 0, 1}));
  EXPECT_NE(mistake().find("of one-hot labels save a.argmax(1)"), std::string::npos)
      << "its whole numbers need no other type";
  y(npyOf<float>("<f4", "(2,)", {1, 2}));
  EXPECT_EQ(mistake(ErrorCode::kBadConfig),
            "job.yaml:4:7: error: y.npy: the elements are float32, but classes are whole numbers: "
            "save them with a.astype('int64'); numbers to learn are named by 'targets'");
  x(npyOf<float>("<f4", "()", {1}));
  EXPECT_EQ(mistake().find("job.yaml:3:7: error: x.npy: the array has 0 dimensions"), 0u);
  std::filesystem::remove(folder_.path() / "x.npy");
  EXPECT_EQ(mistake(), "job.yaml:3:7: error: x.npy: cannot open it: No such file or directory (2)");
}

TEST_F(NpyDataset, TheLabelsOfAnArchiveAreTruthsWhereItHasThem) {
  spec_.format = cluster::DatasetSpec::Format::kNpz;
  spec_.npy.features.path = "x";
  spec_.npy.labels.path = "y";
  const auto truths = [this](const std::string& labels) {
    std::vector<std::pair<std::string, std::string>> files = {
        {"x.npy", npyOf<float>("<f4", "(2, 1)", {1, 2})}};
    if (!labels.empty()) files.emplace_back("y.npy", labels);
    return readNpzExamples(folder_.write("in.npz", zipOf(files, true)), spec_).truths;
  };
  EXPECT_TRUE(truths("").empty());
  EXPECT_EQ(truths(npyOf<int64_t>("<i8", "(2,)", {2, -1})), (std::vector<std::string>{"2", "-1"}))
      << "as they are";
  EXPECT_EQ(truths(npyOf<uint8_t>("|u1", "(2,)", {3, 4})), (std::vector<std::string>{"3", "4"}));
  EXPECT_EQ(truths(npyOf<double>("<f8", "(2, 2)", {0.5, 1, 2, 3})),
            (std::vector<std::string>{"0.5", "1", "2", "3"}));
  EXPECT_THROW(truths(npyOf<int32_t>("<i4", "(3,)", {1, 2, 3})), Error);
}

TEST_F(NpyDataset, ReadsTheArraysOfAnArchive) {
  spec_.format = cluster::DatasetSpec::Format::kNpz;
  spec_.npy.archive = {
      folder_.write("d.npz", zipOf({{"x.npy", npyOf<float>("<f4", "(2, 1)", {1, 2})},
                                    {"y.npy", npyOf<uint8_t>("|u1", "(2,)", {3, 4})}},
                                   true)),
      {"job.yaml", 2, 7}};
  spec_.npy.features.path = "x";
  spec_.npy.labels.path = "y";
  EXPECT_EQ(readNpyDataset(spec_).labels().as<int32_t>()[1], 4);
  EXPECT_EQ(readNpyParts(spec_).count, 2);
  spec_.npy.labels.path = "z";
  EXPECT_EQ(mistake().find("job.yaml:4:7: error: d.npz: there is no 'z.npy' in the archive"), 0u);
  folder_.write("d.npz", "PK");
  EXPECT_EQ(
      mistake().find("job.yaml:2:7: error: d.npz: truncated: the zip archive lacks its directory"),
      0u);
}

}  // namespace
}  // namespace dtf::data
