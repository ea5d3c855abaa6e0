#include "common/train/confusion_matrix.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dtf::train {
namespace {

// The figures are those of sklearn.metrics.classification_report(zero_division=0).
TEST(ConfusionMatrix, ItsFiguresAreOfTheClassesThatOccur) {
  ConfusionMatrix matrix;
  const std::pair<int, int> examples[] = {{0, 0}, {0, 0}, {0, 2}, {2, 2}, {2, 2},
                                          {2, 0}, {2, 2}, {5, 2}, {5, 7}};
  for (const auto& [truth, predicted] : examples) matrix.add(truth, predicted);
  const ClassReport report = matrix.report();
  ASSERT_EQ(report.classes.size(), 4u);
  EXPECT_EQ(report.examples, 9);
  EXPECT_EQ(report.unpredicted, 0);
  EXPECT_DOUBLE_EQ(report.accuracy, 5.0 / 9);
  const ClassFigures& two = report.classes[1];
  EXPECT_EQ(two.index, 2);
  EXPECT_EQ(two.support, 4);
  EXPECT_EQ(two.predicted, 5);
  EXPECT_DOUBLE_EQ(two.scores.precision, 0.6);
  EXPECT_DOUBLE_EQ(two.scores.recall, 0.75);
  EXPECT_DOUBLE_EQ(two.scores.f1, 2.0 / 3);
  EXPECT_EQ(report.classes[2].scores.f1, 0) << "no example of 5 was found";
  EXPECT_EQ(report.classes[3].support, 0);
  EXPECT_EQ(report.classes[3].predicted, 1);
  EXPECT_DOUBLE_EQ(report.macro.precision, (2.0 / 3 + 0.6) / 4);
  EXPECT_DOUBLE_EQ(report.macro.f1, (2.0 / 3 + 2.0 / 3) / 4);
  EXPECT_DOUBLE_EQ(report.weighted.recall, report.accuracy);
  EXPECT_DOUBLE_EQ(report.weighted.precision, (3 * 2.0 / 3 + 4 * 0.6) / 9);
}

TEST(ConfusionMatrix, NamesTheMostConfusedPairsFirst) {
  ConfusionMatrix matrix;
  for (const auto& [truth, predicted] :
       {std::pair(3, 1), {1, 3}, {1, 3}, {0, 2}, {4, 4}, {4, 4}, {4, 4}})
    matrix.add(truth, predicted);
  const std::vector<ConfusedPair> pairs = matrix.mostConfused(2);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].truth, 1);
  EXPECT_EQ(pairs[0].predicted, 3);
  EXPECT_EQ(pairs[0].count, 2);
  EXPECT_EQ(pairs[1].truth, 0) << "equal counts are in the order of classes";
  EXPECT_EQ(matrix.count(4, 4), 3);
  EXPECT_EQ(matrix.count(4, 3), 0);
}

// A model with NaN outputs predicts no class: its examples are misses.
TEST(ConfusionMatrix, AnExampleWithoutAPredictionIsAMiss) {
  ConfusionMatrix matrix;
  matrix.add(1, 1);
  matrix.add(1, std::nullopt);
  const ClassReport report = matrix.report();
  EXPECT_EQ(report.unpredicted, 1);
  EXPECT_DOUBLE_EQ(report.accuracy, 0.5);
  ASSERT_EQ(report.classes.size(), 1u);
  EXPECT_DOUBLE_EQ(report.classes[0].scores.recall, 0.5);
  EXPECT_DOUBLE_EQ(report.classes[0].scores.precision, 1);
}

TEST(ConfusionMatrix, OfNoExamplesIsEmpty) {
  const ClassReport report = ConfusionMatrix().report();
  EXPECT_TRUE(report.classes.empty());
  EXPECT_EQ(report.accuracy, 0);
}

}  // namespace
}  // namespace dtf::train
