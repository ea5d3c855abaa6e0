#include "common/train/class_report.h"

#include <gmock/gmock.h>

namespace dtf::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ConfusionMatrix twoClasses() {
  ConfusionMatrix matrix;
  for (const auto& [truth, predicted] : {std::pair(0, 0), {0, 0}, {0, 1}, {1, 1}})
    matrix.add(truth, predicted);
  return matrix;
}

// Each class is mistaken for the next one once, the first class twice.
ConfusionMatrix manyClasses(int classes) {
  ConfusionMatrix matrix;
  for (int i = 0; i < classes; ++i) {
    matrix.add(i, i);
    matrix.add(i, (i + 1) % classes);
  }
  matrix.add(0, 1);
  return matrix;
}

TEST(ClassReport, AsTextHasScoresAndAMatrix) {
  const std::vector<std::string> names = {"no", "yes"};
  EXPECT_EQ(classReportText(twoClasses(), names),
            "  class             precision  recall  f1      support\n"
            "  no                1.0000     0.6667  0.8000  3\n"
            "  yes               0.5000     1.0000  0.6667  1\n"
            "  macro average     0.7500     0.8333  0.7333  4\n"
            "  weighted average  0.8750     0.7500  0.7667  4\n"
            "  confusion: a row for each class, a column for each predicted class\n"
            "  class  no  yes\n"
            "  no     2   1\n"
            "  yes    0   1\n");
  EXPECT_THAT(classReportText(twoClasses(), {}), HasSubstr("\n  0                 1.0000 "));
}

TEST(ClassReport, OfManyClassesIsBounded) {
  const std::string text = classReportText(manyClasses(1000), {});
  EXPECT_THAT(text, HasSubstr("  (950 more, with a higher f1: --json prints all)\n"));
  EXPECT_THAT(text, Not(HasSubstr("confusion:")));
  EXPECT_THAT(text, HasSubstr("  the most confused classes\n"
                              "  class  predicted  examples\n"
                              "  0      1          2\n"
                              "  1      2          1\n"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 80);
  const Json json = classReportJson(manyClasses(1000), {});
  EXPECT_EQ(json["classes"].size(), 1000u);
  EXPECT_TRUE(json["confusion"].isNull());
  EXPECT_EQ(json["most_confused"].size(), 20u);
  EXPECT_EQ(json["most_confused"][0].dump(), R"({"class":0,"predicted":1,"examples":2})");
}

TEST(ClassReport, AsJsonHasNumbersAndNames) {
  const std::vector<std::string> names = {"no"};
  const Json json = classReportJson(twoClasses(), names);
  EXPECT_EQ(json["accuracy"], 0.75);
  EXPECT_EQ(json["examples"], 4);
  EXPECT_EQ(json["classes"][0]["name"], "no");
  EXPECT_TRUE(json["classes"][1]["name"].isNull()) << "the model has more units than names";
  EXPECT_EQ(json["classes"][1]["precision"], 0.5);
  EXPECT_EQ(json["classes"][1]["support"], 1);
  EXPECT_EQ(json["confusion"].dump(), R"({"classes":[0,1],"matrix":[[2,1],[0,1]]})");
  EXPECT_EQ(json["macro"]["recall"].asDouble(), (2.0 / 3 + 1) / 2);
}

TEST(ClassReport, CountsExamplesWithoutAPrediction) {
  ConfusionMatrix matrix = twoClasses();
  matrix.add(1, std::nullopt);
  EXPECT_THAT(classReportText(matrix, {}),
              HasSubstr("  1 example without a predicted class: an output is no number\n"));
  EXPECT_EQ(classReportJson(matrix, {})["unpredicted"], 1);
}

}  // namespace
}  // namespace dtf::train
