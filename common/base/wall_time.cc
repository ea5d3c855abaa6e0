#include "common/base/wall_time.h"

#include <fmt/core.h>

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

}  // namespace dtf
