#pragma once

// The metrics of an evaluation beside the loss, and which of them fit a model.

#include <optional>
#include <string>
#include <string_view>

#include "common/model/model_spec.h"

namespace dtf::model {

// The choices of `metrics`; after the first in the order of MetricKind. The 5 stands for any
// number, and k for 5, Keras's default.
inline constexpr std::string_view kMetricNames =
    "accuracy|sparse_top_5_categorical_accuracy|auc|precision|recall|mean_absolute_error|"
    "mean_squared_error|root_mean_squared_error|r2_score";

std::string nameOf(const MetricSpec& metric);  // as the file spells it, else its name of today
// Returns the metric of a name, today's or an old one; nullopt if there is none. accuracy isn't one
// of these.
std::optional<MetricSpec> metricNamed(std::string_view name);
// Returns today's name if the file spells the metric with an old one that isn't a synonym.
std::optional<std::string> renamed(const MetricSpec& metric);
inline bool isMetricName(std::string_view name) {
  return metricNamed(name).has_value();
}

// The other keys of all reports of an evaluation: summary.json, `eval --json`, events, and the
// scalars of TensorBoard. A model's scalar can't have their names.
inline constexpr std::string_view kEvaluationKeys[] = {
    "accuracy",        "checkpoint",  "event",         "examples", "examples/sec", "global_step",
    "global_step/sec", "job",         "learning_rate", "left_out", "loss",         "metric",
    "moving_averages", "other_words", "report",        "schema",   "step",         "time"};
bool isEvaluationKey(std::string_view name);

// Returns, for a message, why the metric doesn't fit the model with outputs of `units`; nullopt: it
// fits.
std::optional<std::string> metricFault(const MetricSpec& metric, const ModelSpec& model,
                                       int64_t units);

}  // namespace dtf::model
