#include "common/train/metric.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/model/metrics.h"

namespace dtf::train {
namespace {

using model::MetricKind;

TEST(Metric, OfNothingThereIsNone) {
  for (const MetricKind kind : {MetricKind::kTopK, MetricKind::kAuc, MetricKind::kPrecision,
                                MetricKind::kRecall, MetricKind::kMae, MetricKind::kR2})
    EXPECT_EQ(makeMetric(kind, OutputScale::kLogits, 7)->value(), std::nullopt)
        << model::nameOf(kind);
}

}  // namespace
}  // namespace dtf::train
