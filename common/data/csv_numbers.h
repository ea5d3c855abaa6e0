#pragma once

// What a field of a table in text holds.

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace dtf::data {

// Without spaces and tabs around it.
inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The whole of `text` as a number, which a plus may begin; nullopt: it is none, or infinite.
template <class T>
std::optional<T> numberOf(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if constexpr (std::is_floating_point_v<T>)
    if (error == std::errc::result_out_of_range && end == text.data() + text.size() &&
        std::strtod(std::string(text).c_str(), nullptr) == 0)
      return T{};  // too small, where from_chars() doesn't say of which kind it is
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace dtf::data
