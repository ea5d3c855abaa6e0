#include "common/base/wall_time.h"

#include <fmt/core.h>

#include <cstdio>
#include <ctime>

namespace dtf {

std::string wallTimeText(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time - whole).count();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  const long minutes = local.tm_gmtoff / 60;
  const long east = minutes < 0 ? -minutes : minutes;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{}{:02}:{:02}", local.tm_year + 1900,
                     local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec, ms,
                     minutes < 0 ? '-' : '+', east / 60, east % 60);
}

std::optional<std::chrono::system_clock::time_point> wallTimeOf(const std::string& text) {
  std::tm time{};
  int ms = 0, hours = 0, minutes = 0, end = 0;
  char east = 0;
  const int found = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3d%c%2d:%2d%n",
                                &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
                                &time.tm_min, &time.tm_sec, &ms, &east, &hours, &minutes, &end);
  const bool is_whole = found == 10 && static_cast<size_t>(end) == text.size();
  if (!is_whole || (east != '+' && east != '-')) return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  const std::chrono::minutes offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return std::chrono::system_clock::from_time_t(::timegm(&time)) + std::chrono::milliseconds(ms) +
         (east == '+' ? -offset : offset);
}

}  // namespace dtf
