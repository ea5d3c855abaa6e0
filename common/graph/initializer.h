#pragma once

// What a variable may hold before the first step, by the words that its op and the file use. The
// formulae are in train/initial_values.h.

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace dtf::graph {

inline constexpr std::string_view kInitializerNames =
    "glorot_uniform|glorot_normal|he_uniform|he_normal|lecun_uniform|lecun_normal|"
    "random_uniform|truncated_normal|orthogonal|zeros|ones";

// Beside these words "constant=0.1": that number everywhere.
inline constexpr std::string_view kConstantInitializer = "constant=";

// The number of a constant initializer; nullopt for any other, and for what is no finite number.
inline std::optional<double> constantOf(std::string_view initializer) {
  if (!initializer.starts_with(kConstantInitializer)) return std::nullopt;
  const std::string_view text = initializer.substr(kConstantInitializer.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace dtf::graph
