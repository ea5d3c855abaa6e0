#include "launcher/init/array_profile.h"

#include <gmock/gmock.h>

#include "tests/unit/data/npy_files.h"
#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using data::npyOf;
using data::zipOf;
using ::testing::HasSubstr;

class ArrayProfileTest : public InitTest {
 protected:
  using Files = std::vector<std::pair<std::string, std::string>>;
  ArraysProfile profile(const Files& files, const std::optional<std::string>& target = std::nullopt,
                        const std::optional<std::string>& features = std::nullopt) {
    folder_.write("d.npz", zipOf(files));
    return profileArchive(path("d.npz"), target, features);
  }

  // Six records of two numbers, and three classes.
  const std::string records_ =
      npyOf<float>("<f4", "(6, 2)", {1, 10, 2, 10, 3, 10, 1, 30, 2, 30, 3, 30});
  const std::string classes_ = npyOf<int32_t>("<i4", "(6,)", {0, 1, 2, 0, 1, 2});
};

TEST_F(ArrayProfileTest, UsualNamesAreFound) {
  const ArraysProfile found = profile({{"y.npy", classes_}, {"X.npy", records_}});
  EXPECT_EQ(found.features, "X");
  EXPECT_EQ(found.labels, "y");
  EXPECT_EQ(found.examples, 6);
  EXPECT_EQ(found.shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(found.classes, 3);
  EXPECT_EQ(found.mean, (std::vector<double>{2, 20}));
  EXPECT_NEAR(found.deviation[1], 10, 1e-9);
  EXPECT_EQ(found.arrays[1].text(), "X float32 [6, 2]");
}

TEST_F(ArrayProfileTest, ArraysOfOtherNamesAreFoundWhereThereAreTwo) {
  const ArraysProfile found = profile({{"a.npy", records_}, {"b.npy", classes_}});
  EXPECT_EQ(found.features, "a");
  EXPECT_EQ(found.labels, "b");
}

TEST_F(ArrayProfileTest, APersonChoosesAmongMore) {
  const Files files = {{"a.npy", records_}, {"b.npy", records_}, {"c.npy", classes_}};
  const std::string why = mistakeOf(ErrorCode::kUsage, [&] { profile(files); });
  EXPECT_THAT(why, HasSubstr("--features ARRAY and --target ARRAY. The archive has: a float32 [6, "
                             "2]; b float32 [6, 2]; c int32 [6]"));
  EXPECT_EQ(profile(files, "c", "b").features, "b");
  EXPECT_THAT(mistakeOf(ErrorCode::kUsage, [&] { profile(files, "d", "b"); }),
              HasSubstr("d.npz: error: --target: there is no array 'd'"));
}

TEST_F(ArrayProfileTest, TestDataOfTheArchiveAreEvaluated) {
  const ArraysProfile found = profile({{"x_train.npy", records_},
                                       {"y_train.npy", classes_},
                                       {"x_test.npy", records_},
                                       {"y_test.npy", classes_}});
  EXPECT_EQ(found.features, "x_train");
  EXPECT_EQ(found.eval_features, "x_test");
  EXPECT_EQ(found.eval_labels, "y_test");
}

TEST_F(ArrayProfileTest, ManyBytesAreAnImageAndFewAreNumbers) {
  const std::string images = npyOf<uint8_t>("|u1", "(6, 4, 4)", std::vector<uint8_t>(96, 7));
  EXPECT_TRUE(profile({{"x.npy", images}, {"y.npy", classes_}}).pixels);
  const std::string few = npyOf<uint8_t>("|u1", "(6, 1)", {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(profile({{"x.npy", few}, {"y.npy", classes_}}).bytes);
}

TEST_F(ArrayProfileTest, FloatsAreNumbersToLearn) {
  const std::string prices = npyOf<double>("<f8", "(6,)", {1.5, 2, 3, 4, 5, 6});
  const ArraysProfile found = profile({{"x.npy", records_}, {"y.npy", prices}});
  EXPECT_EQ(found.classes, 0);
  EXPECT_EQ(found.targets, 1);
  EXPECT_NEAR(found.target_mean, 3.58333, 1e-4);
  const std::string tags = npyOf<uint8_t>("|u1", "(6, 2)", {0, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1});
  EXPECT_TRUE(profile({{"x.npy", records_}, {"y.npy", tags}}).tags);
  EXPECT_EQ(profile({{"x.npy", records_}, {"y.npy", tags}}).targets, 2);
}

TEST_F(ArrayProfileTest, FewWholeNumbersAsFloatsMayBeClasses) {
  const std::string classes = npyOf<float>("<f4", "(6,)", {0, 1, 2, 0, 1, 2});
  const ArraysProfile found = profile({{"x.npy", records_}, {"y.npy", classes}});
  EXPECT_EQ(found.classes, 0);
  EXPECT_EQ(found.whole_values, 3);
  EXPECT_EQ(found.labels_type, "float32");
  const std::vector<std::vector<float>> amounts = {
      {0, 1, 2, 0, 1, 2.5}, {-1, 1, 0, -1, 1, 0}, {0, 1, 2, 3, 4, 5}, {0, 1, 1, 0, 1, 0}};
  for (const std::vector<float>& each : amounts) {
    const std::string y = npyOf<float>("<f4", "(6,)", each);
    EXPECT_EQ(profile({{"x.npy", records_}, {"y.npy", y}}).whole_values, 0) << each[0];
  }
  EXPECT_EQ(profile({{"x.npy", records_}, {"y.npy", classes_}}).whole_values, 0);
}

TEST_F(ArrayProfileTest, RowsWithASingleOneAreOneHot) {
  const auto isOneHot = [&](const std::vector<float>& y) {
    const ArraysProfile found =
        profile({{"x.npy", records_}, {"y.npy", npyOf<float>("<f4", "(6, 2)", y)}});
    EXPECT_TRUE(found.tags);
    return found.one_hot;
  };
  EXPECT_TRUE(isOneHot({0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0}));
  EXPECT_FALSE(isOneHot({0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1}));
  EXPECT_FALSE(isOneHot({0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0}));
  const std::string column = npyOf<float>("<f4", "(6, 1)", {0, 1, 1, 0, 1, 0});
  EXPECT_FALSE(profile({{"x.npy", records_}, {"y.npy", column}}).one_hot);
}

TEST_F(ArrayProfileTest, MoreWholeNumbersThanClassesAreNumbersToLearn) {
  std::vector<int32_t> years;
  for (int32_t i = 0; i < 30'000; ++i) years.push_back(i);
  const std::string x = npyOf<float>("<f4", "(30000, 1)", std::vector<float>(30'000, 1));
  const ArraysProfile found =
      profile({{"x.npy", x}, {"y.npy", npyOf<int32_t>("<i4", "(30000,)", years)}});
  EXPECT_EQ(found.classes, 0);
  EXPECT_FALSE(found.tags);
  EXPECT_NEAR(found.target_mean, 14'999.5, 1e-3);
}

TEST_F(ArrayProfileTest, LabelsThatAreTextsAreShownAndRefusedWithWhatToDo) {
  const std::string texts =
      npyOf("{'descr': '<U4', 'fortran_order': False, 'shape': (6,), }", std::string(96, '\0'));
  for (const char* name : {"y.npy", "kinds.npy"}) {
    const std::string why = mistakeOf(ErrorCode::kBadData, [&] {
      profile({{"x.npy", records_}, {name, texts}});
    });
    EXPECT_THAT(why, HasSubstr("the elements are '<U4'"));
    EXPECT_THAT(why, HasSubstr("number them, as np.unique(a, return_inverse=True)[1] does"));
  }
  EXPECT_EQ(
      profile({{"x.npy", records_}, {"y.npy", classes_}, {"names.npy", texts}}).arrays[2].text(),
      "names <U4 [6]");
  EXPECT_EQ(profile({{"a.npy", records_}, {"kind.npy", classes_}, {"names.npy", texts}}).labels,
            "kind")
      << "what can be read comes first";
}

TEST_F(ArrayProfileTest, ClassesWithoutAnExampleAreFound) {
  const std::string gaps = npyOf<int32_t>("<i4", "(6,)", {1, 1, 4, 4, 1, 4});
  const ArraysProfile found = profile({{"x.npy", records_}, {"y.npy", gaps}});
  EXPECT_EQ(found.classes, 5);
  EXPECT_EQ(found.empty_classes, (std::vector<int64_t>{0, 2, 3}));
  EXPECT_TRUE(profile({{"x.npy", records_}, {"y.npy", classes_}}).empty_classes.empty());
}

TEST_F(ArrayProfileTest, ASingleClassIsRefused) {
  const std::string one = npyOf<int32_t>("<i4", "(6,)", std::vector<int32_t>(6, 3));
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData,
                        [&] {
                          profile({{"x.npy", records_}, {"y.npy", one}});
                        }),
              HasSubstr("each label of 'y' is 3, so there is nothing to tell apart"));
}

TEST_F(ArrayProfileTest, AnArrayHasItsLabelsBesideIt) {
  folder_.write("x.npy", records_);
  folder_.write("other.npy", classes_);
  EXPECT_THAT(mistakeOf(ErrorCode::kUsage, [&] { profileArray(path("x.npy"), std::nullopt); }),
              HasSubstr("x.npy float32 [6, 2] are the examples: name the array of their labels "
                        "with --target FILE.npy"));
  EXPECT_EQ(profileArray(path("x.npy"), path("other.npy").string()).classes, 3);
  folder_.write("y.npy", classes_);
  EXPECT_EQ(profileArray(path("x.npy"), std::nullopt).labels, path("y.npy"));
}

TEST_F(ArrayProfileTest, ArraysThatDoNotBelongTogetherAreRefused) {
  const std::string fewer = npyOf<int32_t>("<i4", "(3,)", {0, 1, 2});
  EXPECT_THAT(mistakeOf(ErrorCode::kBadData,
                        [&] {
                          profile({{"x.npy", records_}, {"y.npy", fewer}});
                        }),
              HasSubstr("don't belong together"));
}

}  // namespace
}  // namespace dtf::launcher
