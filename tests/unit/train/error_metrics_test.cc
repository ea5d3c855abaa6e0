// Expected values are scikit-learn's (1.9) for the same numbers, unless another source is named.

#include "common/train/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/train/metric_cases.h"

namespace dtf::train {
namespace {

using model::MetricKind;

const JudgedCase kTwoTargets{2, {2.5, 0, 0, 1.5, 2, 2, 8, 5}, {}, {3, -0.5, -0.5, 1, 2, 2, 7, 4}};

TEST(ErrorMetrics, AreTheMeanOverTheUnits) {
  expectMetricNear(MetricKind::kMae, OutputScale::kTargets, kTwoTargets, 0.5);
  expectMetricNear(MetricKind::kMse, OutputScale::kTargets, kTwoTargets, 0.375);
  expectMetricNear(MetricKind::kRmse, OutputScale::kTargets, kTwoTargets, 0.6123724356957945);
  expectMetricNear(MetricKind::kR2, OutputScale::kTargets, kTwoTargets, 0.9041286299259927);
}

TEST(ErrorMetrics, TargetsThatAreAllAlikeAreExplainedOrNot) {
  JudgedCase constant{2, {1, 4, 2, 4, 2, 4}, {}, {1, 4, 2, 4, 3, 4}};
  expectMetricNear(MetricKind::kR2, OutputScale::kTargets, constant, 0.75);
  constant.outputs[1] = 5;
  expectMetricNear(MetricKind::kR2, OutputScale::kTargets, constant, 0.25);
}

TEST(ErrorMetrics, SpreadsAroundALargeMeanKeepTheirDigits) {
  JudgedCase far{1, {}, {}, {}};
  for (int i = 0; i < 1000; ++i) {
    far.targets.push_back(1e6F + static_cast<float>(i % 2));
    far.outputs.push_back(1e6F + 0.5F);
  }
  expectMetricNear(MetricKind::kR2, OutputScale::kTargets, far, 0);
}

// By hand: rows (0.5, 0.5) against (1, 0) and (0, 1); one unit against its class.
TEST(ErrorMetrics, AClassIsItsOneHotRowOrItself) {
  expectMetricNear(MetricKind::kMae, OutputScale::kTargets, {2, {0.5, 0.5, 0.5, 0.5}, {0, 1}, {}},
                   0.5);
  expectMetricNear(MetricKind::kMse, OutputScale::kTargets, {1, {0.5, 3}, {1, 0}, {}},
                   (0.25 + 9) / 2);
}

TEST(ErrorMetrics, OfAnOutputThatIsNoNumberThereIsNone) {
  JudgedCase constant{1, {1, std::nanf("")}, {}, {2, 2}};
  for (const MetricKind kind :
       {MetricKind::kMae, MetricKind::kMse, MetricKind::kRmse, MetricKind::kR2})
    EXPECT_FALSE(valueOf(kind, OutputScale::kTargets, constant));
}

}  // namespace
}  // namespace dtf::train
