#include "common/base/metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/check.h"

namespace dtf {

namespace {

std::string_view kindName(Metric::Kind kind) {
  switch (kind) {
    case Metric::Kind::kCounter:
      return "counter";
    case Metric::Kind::kGauge:
      return "gauge";
    case Metric::Kind::kHistogram:
      return "histogram";
  }
  DTF_CHECK(false);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

// fmt writes the shortest text that reads back as the same number.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string labelText(const MetricLabels& common, const MetricLabels& own,
                      std::string_view at_most = {}) {
  std::string text;
  const auto add = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  };
  for (const auto& [name, value] : common) add(name, value);
  for (const auto& [name, value] : own) add(name, value);
  if (!at_most.empty()) add("le", at_most);
  return text.empty() ? "" : "{" + text + "}";
}

std::string histogramText(const Metric& metric, const MetricLabels& common) {
  const HistogramValue& histogram = metric.histogram;
  std::string text;
  uint64_t count = 0;
  double last = -std::numeric_limits<double>::infinity();
  for (const HistogramValue::Bucket& bucket : histogram.buckets) {
    DTF_CHECK(bucket.at_most > last);
    last = bucket.at_most;
    count += bucket.count;
    text += fmt::format("{}_bucket{} {}\n", metric.name,
                        labelText(common, {}, number(bucket.at_most)), count);
  }
  count += histogram.above;
  text += fmt::format("{}_bucket{} {}\n", metric.name, labelText(common, {}, "+Inf"), count);
  const std::string labels = labelText(common, {});
  text += fmt::format("{}_sum{} {}\n", metric.name, labels, number(histogram.sum));
  return text + fmt::format("{}_count{} {}\n", metric.name, labels, count);
}

}  // namespace

Metric counter(std::string_view name, std::string_view help, double value) {
  DTF_CHECK(name.ends_with("_total"));
  return {name, help, Metric::Kind::kCounter, {{value}}};
}

Metric gauge(std::string_view name, std::string_view help, double value) {
  return {name, help, Metric::Kind::kGauge, {{value}}};
}

std::string metricsText(std::span<const Metric> metrics, const MetricLabels& common) {
  std::string text;
  for (const Metric& metric : metrics) {
    DTF_CHECK(!metric.name.empty() && metric.help.find_first_of("\\\n") == std::string_view::npos);
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help,
                        kindName(metric.kind));
    if (metric.kind == Metric::Kind::kHistogram) text += histogramText(metric, common);
    for (const MetricValue& value : metric.values)
      text += fmt::format("{}{} {}\n", metric.name, labelText(common, value.labels),
                          number(value.value));
  }
  return text;
}

}  // namespace dtf
