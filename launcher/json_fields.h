#pragma once

// Fields of the JSON objects that dtf-launch reads and writes. What is read was written by another
// process: a field of another type counts as missing.

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/model/metrics.h"

namespace dtf::launcher {

template <class T>
nlohmann::ordered_json orNull(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

// The text under `key`; "" where there is none.
template <class Json>
std::string textOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return found->template get<std::string>();
}

// The finite number under `key`.
template <class Json>
std::optional<double> numberOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto value = found->template get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Of an evaluation the metrics beside loss and accuracy, by name. Another process wrote it: what is no
// metric is passed over.
template <class Json>
std::vector<std::pair<std::string, double>> metricsOf(const Json& evaluation) {
  std::vector<std::pair<std::string, double>> metrics;
  for (const auto& [name, value] : evaluation.items())
    if (const auto number = numberOf(evaluation, name.c_str()); number && model::isMetricName(name))
      metrics.emplace_back(name, *number);
  return metrics;
}

// The whole number from 0 on under `key`.
template <class Json>
std::optional<uint64_t> countOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (!found->is_number_unsigned() && found->template get<int64_t>() < 0) return std::nullopt;
  return found->template get<uint64_t>();
}

}  // namespace dtf::launcher
