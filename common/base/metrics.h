#pragma once

// Metrics of a program in Prometheus' text format (version 0.0.4). Values are read from their
// owners on each request: nothing is counted twice.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtf {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricValue {
  double value = 0;
  MetricLabels labels{};
};

// The distribution of a measured value.
struct HistogramValue {
  struct Bucket {
    double at_most = 0;
    uint64_t count = 0;  // values in this bucket alone
  };
  std::vector<Bucket> buckets;  // ascending
  uint64_t above = 0;           // values above the last bucket
  double sum = 0;               // the sum of all values
};

// Name and help are literals. The name ends with its unit, the name of a counter with _total.
struct Metric {
  enum class Kind : uint8_t { kCounter, kGauge, kHistogram };
  std::string_view name;
  std::string_view help;
  Kind kind = Kind::kGauge;
  std::vector<MetricValue> values{};  // of a counter or gauge: one, or one per label
  HistogramValue histogram{};
};

Metric counter(std::string_view name, std::string_view help, double value);
Metric gauge(std::string_view name, std::string_view help, double value);

// Returns one line for each value below its name and help; adds the labels `common` to each.
std::string metricsText(std::span<const Metric> metrics, const MetricLabels& common);

}  // namespace dtf
