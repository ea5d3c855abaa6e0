#include "common/data/csv_times.h"

#include <bit>
#include <chrono>
#include <string>

#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"

namespace dtf::data {

namespace {

// Takes `digits` digits off the front; nullopt if others are there.
std::optional<int> takeDigits(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool takeOneOf(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Returns the seconds of "12:30", "12:30:00" or "12:30:00.5", which is all of `text`.
std::optional<double> secondsOfDay(std::string_view text) {
  const std::optional<int> hour = takeDigits(text, 2);
  if (!hour || *hour > 24 || !takeOneOf(text, ":")) return std::nullopt;
  const std::optional<int> minute = takeDigits(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  double seconds = *hour * 3600.0 + *minute * 60.0;
  if (text.empty()) return seconds;
  if (!takeOneOf(text, ":") || text.empty() || text[0] == '-') return std::nullopt;
  const std::optional<double> rest = numberOf<double>(text);
  if (!rest || *rest >= 61) return std::nullopt;
  return seconds + *rest;
}

std::optional<double> secondsOf(std::string_view text) {
  const std::optional<int> year = takeDigits(text, 4);
  if (!year || !takeOneOf(text, "-")) return std::nullopt;
  const std::optional<int> month = takeDigits(text, 2);
  if (!month || !takeOneOf(text, "-")) return std::nullopt;
  const std::optional<int> day = takeDigits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  const double midnight = static_cast<double>(days) * 86400;
  if (text.empty()) return midnight;
  if (!takeOneOf(text, "T ")) return std::nullopt;
  if (text.ends_with('Z')) text.remove_suffix(1);
  const std::optional<double> seconds = secondsOfDay(text);
  return seconds ? std::optional(midnight + *seconds) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> timeKey(std::string_view field, char decimal) {
  const std::string_view text = trimmed(field);
  std::optional<double> time = decimalOf(text, decimal);
  if (!time) time = secondsOf(text);
  if (!time) return std::nullopt;
  // The bits of doubles ascend as the numbers do, but for the sign.
  constexpr uint64_t kSign = uint64_t{1} << 63;
  const auto bits = std::bit_cast<uint64_t>(*time + 0.0);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

}  // namespace dtf::data
