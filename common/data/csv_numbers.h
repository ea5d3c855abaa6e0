#pragma once

// Converts fields of a table in text to numbers.

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace dtf::data {

// Removes spaces and tabs at both ends.
inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Returns the whole of `text`, which may begin with a plus, as a number; nullopt if it is none, or
// infinite.
template <class T>
std::optional<T> numberOf(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if constexpr (std::is_floating_point_v<T>)
    if (error == std::errc::result_out_of_range && end == text.data() + text.size() &&
        std::strtod(std::string(text).c_str(), nullptr) == 0)
      return T{};  // too small; from_chars() reports too large numbers the same way
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

// Whether a field is a value of a libsvm file, with its index: "3:0.5".
inline bool isIndexedValue(std::string_view field) {
  const size_t colon = field.find(':');
  return colon != std::string_view::npos && numberOf<uint32_t>(field.substr(0, colon)) &&
         numberOf<double>(field.substr(colon + 1));
}

// Whether a field has no value: empty, "NA", "NaN", "null", "?" and the like.
inline bool isMissingField(std::string_view field) {
  constexpr std::array<std::string_view, 9> kMarkers = {"",     "na", "n/a", "nan", "null",
                                                        "none", "?",  "-",   "--"};
  const auto is_same = [field](std::string_view marker) {
    return std::equal(field.begin(), field.end(), marker.begin(), marker.end(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == b;
    });
  };
  return std::any_of(kMarkers.begin(), kMarkers.end(), is_same);
}

}  // namespace dtf::data
