#include "common/data/label_check.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/data/part_of.h"

namespace dtf::data {
namespace {

template <class T>
std::string mistake(const std::vector<T>& labels, int64_t units,
                    TargetRange range = TargetRange::kAny, int64_t width = 1) {
  const Shape shape = std::is_same_v<T, float> ? Shape{width} : Shape();
  try {
    checkLabels(partOf<T>(kLabels, shape, labels, "l.npy"), units, "softmax", range);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "";
}

TEST(CheckLabels, NamesTheFileTheExampleAndTheLayer) {
  EXPECT_EQ(mistake<uint8_t>({0, 12}, 13), "");
  EXPECT_EQ(mistake<uint8_t>({0, 12}, 10),
            "l.npy: example 1 has label 12, but layer 'softmax' has 10 units (labels 0 to 9): give "
            "it at least 13 units, or use other labels");
}

TEST(CheckLabels, CountsBeyondABytesClasses) {
  EXPECT_EQ(mistake<int32_t>({0, 9999}, 10'000), "");
  EXPECT_NE(mistake<int32_t>({0, 10'000}, 10'000).find("example 1 has label 10000"),
            std::string::npos);
  EXPECT_NE(mistake<int64_t>({int64_t{1} << 40}, 10).find("has label 1099511627776"),
            std::string::npos);
  EXPECT_EQ(mistake<int32_t>({3, -1}, 10),
            "l.npy: example 1 has label -1, and classes count from 0: number them, as "
            "np.unique(a, return_inverse=True)[1] does");
}

TEST(CheckLabels, LabelsThatCountFromOneAreNamedAsSuch) {
  const std::string begin =
      "l.npy: example 1 has label 3, but layer 'softmax' has 3 units (labels ";
  EXPECT_EQ(mistake<int32_t>({1, 3, 2}, 3),
            begin +
                "0 to 2), and the labels count from 1: for a table list them, 'class_names: [1, "
                "2, 3]'; for an array subtract 1");
  EXPECT_EQ(mistake<int32_t>({0, 3, 2}, 3),
            begin + "0 to 2): give it at least 4 units, or use other labels")
      << "0 is one of them";
  EXPECT_NE(mistake<int32_t>({1, 2}, 1).find("'class_names: [1, 2]'"), std::string::npos);
  std::vector<int32_t> letters(26);
  for (int32_t i = 0; i < 26; ++i) letters[static_cast<size_t>(i)] = i + 1;
  EXPECT_NE(mistake<int32_t>(letters, 26).find("[1, 2, ..., 26]"), std::string::npos);
}

TEST(CheckLabels, OneUnitTellsTwoClasses) {
  EXPECT_EQ(mistake<int32_t>({0, 1}, 1), "");
  EXPECT_EQ(mistake<int32_t>({0, 1, 2}, 1),
            "l.npy: example 2 has label 2, but layer 'softmax' has one unit (labels 0 and 1): give "
            "it at least 3 units, or use other labels");
}

TEST(CheckIndices, NamesTheFileTheExampleAndTheLayer) {
  const auto mistake = [](const std::vector<int32_t>& words, int64_t vocabulary) -> std::string {
    try {
      checkIndices(partOf<int32_t>(kFeatures, Shape{2}, words, "x.npy"), vocabulary, "words");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(mistake({0, 1, 2, 4}, 5), "");
  EXPECT_EQ(mistake({0, 1, 2, 5}, 5),
            "x.npy: example 1 has 5, but layer 'words' has a vocabulary of 5 (0 to 4): give it a "
            "larger one, or use other data");
  EXPECT_EQ(mistake({0, -1, 2, 4}, 5),
            "x.npy: example 0 has -1, but layer 'words' has a vocabulary of 5 (0 to 4): indices "
            "count from 0");
}

TEST(CheckIndices, FloatsNameRowsToo) {
  const auto mistake = [](const std::vector<float>& words) -> std::string {
    try {
      checkIndices(partOf<float>(kFeatures, Shape{2}, words, "t.csv"), 5, "words");
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(mistake({0, 1, 2, 4}), "");
  EXPECT_EQ(mistake({0, 1, 1e30F, 4}),
            "t.csv: example 1 has 1e+30, but layer 'words' has a vocabulary of 5 (0 to 4): give it "
            "a larger one, or use other data");
  EXPECT_NE(mistake({std::stof("nan"), 1}), "");
}

TEST(CheckLabels, TargetsAreOneForEachUnit) {
  EXPECT_EQ(mistake<float>({-3, 5e9F}, 1), "");
  EXPECT_EQ(mistake<float>({1, 2, 3, 4}, 2, TargetRange::kAny, 2), "");
  EXPECT_EQ(mistake<float>({1, 2, 3, 4}, 3, TargetRange::kAny, 2),
            "l.npy: each example has 2 targets, but layer 'softmax' has 3 units: give it as many");
}

TEST(CheckLabels, TargetsAreInTheRangeOfTheLoss) {
  EXPECT_EQ(mistake<float>({0, 0.5F, 1}, 1, TargetRange::kProbability), "");
  EXPECT_EQ(mistake<float>({0, 1, 0, -1}, 2, TargetRange::kProbability, 2),
            "l.npy: example 1 has target -1, but this loss wants 0 to 1");
  EXPECT_EQ(mistake<float>({0, 0.5F}, 1, TargetRange::kZeroOrOne),
            "l.npy: example 1 has target 0.5, but this loss wants 0 or 1");
  EXPECT_NE(mistake<float>({std::stof("nan")}, 1, TargetRange::kProbability), "");
}

TEST(ClassesWithoutExamples, AreFoundByNumber) {
  const Part labels = partOf<int32_t>(kLabels, Shape(), {3, 0, 3}, "l.npy");
  EXPECT_EQ(classesWithoutExamples(labels, 5), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_TRUE(classesWithoutExamples(labels, 1).empty());
}

}  // namespace
}  // namespace dtf::data
