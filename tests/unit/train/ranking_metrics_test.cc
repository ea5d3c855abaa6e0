// Expected values are scikit-learn's (1.9) for the same numbers, unless another source is named.

#include "common/train/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tests/unit/train/metric_cases.h"

namespace dtf::train {
namespace {

using model::MetricKind;

TEST(RankingMetrics, AreaUnderTheCurve) {
  expectMetricNear(MetricKind::kAuc, OutputScale::kLogits, kTwoClasses, 0.90625);
  expectMetricNear(MetricKind::kAuc, OutputScale::kLogits, kTwoLabels, 11.0 / 12);
  expectMetricNear(MetricKind::kAuc, OutputScale::kSoftmaxLogits, kThreeClasses, 0.875);
  expectMetricNear(MetricKind::kAuc, OutputScale::kTargets, kThreeClasses, 0.7861111111111111);
  JudgedCase pairs{2, {}, kTwoClasses.classes, {}};
  for (const float logit : kTwoClasses.outputs)
    pairs.outputs.insert(pairs.outputs.end(), {1, logit + 1});
  expectMetricNear(MetricKind::kAuc, OutputScale::kSoftmaxLogits, pairs, 0.90625);
}

TEST(RankingMetrics, ProbabilitiesNearOneKeepTheirOrder) {
  const JudgedCase sure{3, {40, 0, 0, 39, 0, 0, 41, 0, 0}, {0, 1, 0}, {}};
  expectMetricNear(MetricKind::kAuc, OutputScale::kSoftmaxLogits, sure, 1);
}

TEST(RankingMetrics, ExamplesThatAreAllAlikeHaveNoOrder) {
  EXPECT_EQ(valueOf(MetricKind::kAuc, OutputScale::kLogits, {1, {1, 2}, {1, 1}, {}}), std::nullopt);
  EXPECT_EQ(valueOf(MetricKind::kAuc, OutputScale::kLogits, {1, {1, std::nanf("")}, {1, 0}, {}}),
            std::nullopt);
}

}  // namespace
}  // namespace dtf::train
