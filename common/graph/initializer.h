#pragma once

// The initial values of variables, by the words that ops and files use. The formulae are in
// arena/initial_value.h.

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace dtf::graph {

inline constexpr std::string_view kInitializerNames =
    "glorot_uniform|glorot_normal|he_uniform|he_normal|lecun_uniform|lecun_normal|"
    "random_uniform|random_normal|truncated_normal|orthogonal|zeros|ones";

// "constant=0.1" is valid, too: the same number everywhere.
inline constexpr std::string_view kConstantInitializer = "constant=";

// Returns the number behind "NAME=" in an initializer; nullopt for any other initializer, and if
// the number is not finite.
inline std::optional<double> numberAfter(std::string_view name, std::string_view initializer) {
  if (!initializer.starts_with(name) || !initializer.substr(name.size()).starts_with('='))
    return std::nullopt;
  const std::string_view text = initializer.substr(name.size() + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Returns the number of a constant initializer; nullopt as above.
inline std::optional<double> constantOf(std::string_view initializer) {
  return numberAfter("constant", initializer);
}

// A distribution with its width: "random_uniform=0.1" is from -0.1 to 0.1, "random_normal=0.01" and
// "truncated_normal=0.01" have that standard deviation.
struct Spread {
  std::string_view name;
  double by = 0;
};

inline std::optional<Spread> spreadOf(std::string_view initializer) {
  for (const std::string_view name : {"random_uniform", "random_normal", "truncated_normal"})
    if (const std::optional<double> by = numberAfter(name, initializer); by && *by >= 0)
      return Spread{name, *by};
  return std::nullopt;
}

}  // namespace dtf::graph
