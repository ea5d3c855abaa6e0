#pragma once

// What a program measures of itself, in the text that Prometheus reads (version 0.0.4 of its
// format). Values are read where they are kept when somebody asks: nothing is counted twice.

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

// How often a measured value was at most so much.
struct HistogramValue {
  struct Bucket {
    double at_most = 0;
    uint64_t count = 0;  // of this bucket alone
  };
  std::vector<Bucket> buckets;  // ascending
  uint64_t above = 0;           // the last of them
  double sum = 0;               // of all values
};

// Name and help are literals; the name has its unit last, a counter's ends with _total.
struct Metric {
  enum class Kind : uint8_t { kCounter, kGauge, kHistogram };
  std::string_view name;
  std::string_view help;
  Kind kind = Kind::kGauge;
  std::vector<MetricValue> values{};  // of a counter or gauge: one, or one for each label
  HistogramValue histogram{};
};

Metric counter(std::string_view name, std::string_view help, double value);
Metric gauge(std::string_view name, std::string_view help, double value);

// One line for each value, below its name and help; each has `common` among its labels.
std::string metricsText(std::span<const Metric> metrics, const MetricLabels& common);

}  // namespace dtf
