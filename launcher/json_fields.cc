#include "launcher/json_fields.h"

#include <cmath>

#include "common/model/metrics.h"

namespace dtf::launcher {

std::string textOf(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  return found != nullptr && found->isString() ? found->asString() : "";
}

std::optional<double> numberOf(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  if (found == nullptr || !found->isNumber()) return std::nullopt;
  const double value = found->asDouble();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> countOf(const Json& object, std::string_view key) {
  const Json* const found = object.find(key);
  if (found == nullptr || !found->isUnsigned()) return std::nullopt;
  return found->asUint64();
}

std::vector<std::pair<std::string, double>> metricsOf(const Json& evaluation) {
  std::vector<std::pair<std::string, double>> metrics;
  if (!evaluation.isObject()) return metrics;
  for (const auto& [name, value] : evaluation.members())
    if (const auto number = numberOf(evaluation, name); number && model::isMetricName(name))
      metrics.emplace_back(name, *number);
  return metrics;
}

}  // namespace dtf::launcher
