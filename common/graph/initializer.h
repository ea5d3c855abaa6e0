#pragma once

// The initial values of variables, by the words that ops and files use. The formulae are in
// train/initial_values.h.

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace dtf::graph {

inline constexpr std::string_view kInitializerNames =
    "glorot_uniform|glorot_normal|he_uniform|he_normal|lecun_uniform|lecun_normal|"
    "random_uniform|truncated_normal|orthogonal|zeros|ones";

// "constant=0.1" is valid, too: the same number everywhere.
inline constexpr std::string_view kConstantInitializer = "constant=";

// Returns the number of a constant initializer; nullopt for any other one, and if the number is not
// finite.
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
