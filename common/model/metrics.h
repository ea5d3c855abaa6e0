#pragma once

// Which figures an evaluation gives beside the loss, and which of them fit a model.

#include <optional>
#include <string>
#include <string_view>

#include "common/model/model_spec.h"

namespace dtf::model {

// The words of `metrics:`; after the first in the order of MetricKind.
inline constexpr std::string_view kMetricNames =
    "accuracy|top_5|auc|precision|recall|mae|mse|rmse|r2";

std::string_view nameOf(MetricKind metric);
bool isMetricName(std::string_view name);  // of a MetricKind

// Why the metric says nothing about outputs of `units`, for a person; nullopt: it fits.
std::optional<std::string> metricFault(MetricKind metric, const ModelSpec& model, int64_t units);

}  // namespace dtf::model
