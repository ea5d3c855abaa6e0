// Expected values are scikit-learn's (1.9) for the same numbers, unless another source is named.

#include "common/train/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/train/metric_cases.h"

namespace dtf::train {
namespace {

using model::MetricKind;

TEST(ClassMetrics, OfSeveralClassesTheMeanOverThem) {
  for (const OutputScale scale : {OutputScale::kSoftmaxLogits, OutputScale::kTargets}) {
    expectMetricNear(MetricKind::kPrecision, scale, kThreeClasses, 2.0 / 3);
    expectMetricNear(MetricKind::kRecall, scale, kThreeClasses, 0.611111111111111);
  }
  JudgedCase first = kThreeClasses;  // class 2 neither occurs nor is chosen now: it doesn't count
  first.outputs = {2, 1, 0, 0.5, 2.5, 1};
  first.classes = {0, 1};
  expectMetricNear(MetricKind::kRecall, OutputScale::kLogits, first, 1);
}

TEST(ClassMetrics, OfTwoClassesThoseOfClassOne) {
  expectMetricNear(MetricKind::kPrecision, OutputScale::kLogits, kTwoClasses, 0.75);
  expectMetricNear(MetricKind::kRecall, OutputScale::kLogits, kTwoClasses, 0.75);
  JudgedCase pairs{2, {}, kTwoClasses.classes, {}};
  for (const float logit : kTwoClasses.outputs)
    pairs.outputs.insert(pairs.outputs.end(), {0, logit});
  expectMetricNear(MetricKind::kPrecision, OutputScale::kSoftmaxLogits, pairs, 0.75);
  JudgedCase shifted = kTwoClasses;  // outputs trained towards 0 and 1
  for (float& output : shifted.outputs) output += 0.5F;
  expectMetricNear(MetricKind::kRecall, OutputScale::kTargets, shifted, 0.75);
}

TEST(ClassMetrics, OfTargetsTheMeanOverTheUnits) {
  expectMetricNear(MetricKind::kPrecision, OutputScale::kLogits, kTwoLabels, 2.0 / 3);
  expectMetricNear(MetricKind::kRecall, OutputScale::kLogits, kTwoLabels, 5.0 / 6);
}

TEST(ClassMetrics, AShareOfNoneIsZero) {
  expectMetricNear(MetricKind::kPrecision, OutputScale::kLogits, {1, {-1, -2}, {1, 1}, {}}, 0);
}

// By hand: the third example's class has five larger outputs, the second's has an equal one, the
// fourth's is NaN.
TEST(ClassMetrics, TopFiveCountsThoseWithFewerThanFiveLarger) {
  const float nan = std::nanf("");
  const JudgedCase cases{6,
                         {9, 1, 1, 1, 1, 1,  //
                          5, 4, 3, 2, 1, 1,  //
                          5, 4, 3, 2, 1, 0,  //
                          1, 1, 1, 1, 1, nan},
                         {0, 5, 5, 5},
                         {}};
  expectMetricNear(MetricKind::kTopK, OutputScale::kSoftmaxLogits, cases, 0.5);
}

TEST(ClassMetrics, TopKCountsThoseWithFewerThanKLarger) {
  const JudgedCase cases{3, {3, 2, 1, 3, 2, 1, 3, 2, 1}, {0, 1, 2}, {}};
  expectMetricNear({MetricKind::kTopK, 1}, OutputScale::kSoftmaxLogits, cases, 1.0 / 3);
  expectMetricNear({MetricKind::kTopK, 2}, OutputScale::kSoftmaxLogits, cases, 2.0 / 3);
}

TEST(ClassMetrics, OfAnOutputThatIsNoNumberThereIsNone) {
  const float nan = std::nanf("");
  for (const MetricKind kind : {MetricKind::kPrecision, MetricKind::kRecall}) {
    EXPECT_FALSE(valueOf(kind, OutputScale::kSoftmaxLogits, {3, {nan, 1, 0}, {0}, {}}));
    EXPECT_FALSE(valueOf(kind, OutputScale::kLogits, {1, {1, nan}, {1, 1}, {}}));
    EXPECT_FALSE(valueOf(kind, OutputScale::kLogits, {2, {1, nan}, {}, {1, 1}}));
  }
}

}  // namespace
}  // namespace dtf::train
