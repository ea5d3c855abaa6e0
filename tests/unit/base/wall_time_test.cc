#include "common/base/wall_time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

namespace dtf {
namespace {

// The time of 2026-03-01T09:11:12.345Z in a zone of POSIX's notation, where west is positive.
std::string in(const char* zone) {
  ::setenv("TZ", zone, 1);
  ::tzset();
  const std::chrono::system_clock::time_point time{std::chrono::milliseconds(1772356272345)};
  const std::string text = wallTimeText(time);
  ::unsetenv("TZ");
  ::tzset();
  return text;
}

TEST(WallTime, IsOfThisHostsZoneAndNamesIt) {
  EXPECT_EQ(in("UTC0"), "2026-03-01T09:11:12.345+00:00");
  EXPECT_EQ(in("CET-1"), "2026-03-01T10:11:12.345+01:00");
  EXPECT_EQ(in("NST3:30"), "2026-03-01T05:41:12.345-03:30");
}

}  // namespace
TEST(WallTime, IsReadBackFromItsText) {
  const auto time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1764552761563));
  EXPECT_EQ(wallTimeOf(wallTimeText(time)), time);
  EXPECT_EQ(wallTimeOf("2025-12-01T01:32:41.563+00:00"), time);
  EXPECT_EQ(wallTimeOf("2025-12-01T07:02:41.563+05:30"), time);
  EXPECT_EQ(wallTimeOf("2025-11-30T22:02:41.563-03:30"), time);
  for (const char* other : {"", "yesterday", "2025-12-01", "2025-12-01T01:32:41.563+00:00 ",
                            "2025-12-01T01:32:41.563Z"})
    EXPECT_EQ(wallTimeOf(other), std::nullopt) << other;
}

}  // namespace dtf
