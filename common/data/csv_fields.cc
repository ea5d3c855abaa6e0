#include "common/data/csv_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "common/data/csv_numbers.h"

namespace dtf::data {

std::optional<double> decimalOf(std::string_view field, char decimal) {
  const std::string_view text = trimmed(field);
  if (decimal == '.') return numberOf<double>(text);
  if (text.find('.') != std::string_view::npos) return std::nullopt;
  std::string with_point(text);
  std::replace(with_point.begin(), with_point.end(), decimal, '.');
  return numberOf<double>(with_point);
}

std::optional<int32_t> booleanOf(std::string_view field) {
  using Word = std::pair<std::string_view, int32_t>;
  constexpr std::array kWords = {Word{"true", 1}, Word{"false", 0}, Word{"yes", 1}, Word{"no", 0}};
  const std::string_view text = trimmed(field);
  for (const auto& [word, value] : kWords)
    if (std::equal(text.begin(), text.end(), word.begin(), word.end(),
                   [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; }))
      return value;
  return std::nullopt;
}

std::optional<float> floatOf(std::string_view field, char decimal) {
  // Reads a double first: a number too small for a float is 0, and no mistake.
  const std::optional<double> number = decimalOf(field, decimal);
  if (!number) {
    const std::optional<int32_t> boolean = booleanOf(field);
    return boolean ? std::optional(static_cast<float>(*boolean)) : std::nullopt;
  }
  if (!std::isfinite(static_cast<float>(*number))) return std::nullopt;
  return static_cast<float>(*number);
}

std::optional<int32_t> indexOf(std::string_view field, char decimal) {
  const std::optional<double> number = decimalOf(field, decimal);
  if (!number || *number != std::floor(*number) || *number < 0 ||
      *number > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return static_cast<int32_t>(*number);
}

std::string className(std::string_view field, char decimal) {
  const std::string_view text = trimmed(field);
  std::string_view digits = text;
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  if (has_sign) digits.remove_prefix(1);
  if (const size_t point = digits.find(decimal); point != std::string_view::npos) {
    if (digits.find_first_not_of('0', point + 1) != std::string_view::npos)
      return std::string(text);
    digits = digits.substr(0, point);
  }
  const bool is_whole = !digits.empty() &&
                        digits.find_first_not_of("0123456789") == std::string_view::npos &&
                        (digits == "0" || digits[0] != '0');
  if (!is_whole) return std::string(text);
  return std::string(text[0] == '-' && digits != "0" ? "-" : "").append(digits);
}

}  // namespace dtf::data
