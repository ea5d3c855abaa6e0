#pragma once

// Which figures an evaluation gives beside the loss, and which of them fit a model.

#include <optional>
#include <string>
#include <string_view>

#include "common/model/model_spec.h"

namespace dtf::model {

// The words of `metrics:`; after the first in the order of MetricKind. top_5 stands for any top_K.
inline constexpr std::string_view kMetricNames =
    "accuracy|top_5|auc|precision|recall|mae|mse|rmse|r2";

std::string nameOf(const MetricSpec& metric);  // "auc", "top_5"
// Of such a name; nullopt: there is no such metric. accuracy is none of these.
std::optional<MetricSpec> metricNamed(std::string_view name);
inline bool isMetricName(std::string_view name) {
  return metricNamed(name).has_value();
}

// Why the metric says nothing about outputs of `units`, for a person; nullopt: it fits.
std::optional<std::string> metricFault(const MetricSpec& metric, const ModelSpec& model,
                                       int64_t units);

}  // namespace dtf::model
