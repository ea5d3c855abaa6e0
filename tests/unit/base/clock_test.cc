#include "common/base/clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace dtf {

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(std::chrono::seconds(3));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(3));
}

TEST(SystemClock, NeverGoesBack) {
  SystemClock clock;
  TimePoint last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = clock.now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(Clock, SecondsOfADuration) {
  EXPECT_DOUBLE_EQ(toSeconds(std::chrono::milliseconds(1500)), 1.5);
}

TEST(Clock, DurationOfSecondsIsBounded) {
  EXPECT_EQ(fromSeconds(1.5), std::chrono::milliseconds(1500));
  EXPECT_EQ(fromSeconds(0), Duration{0});
  EXPECT_EQ(fromSeconds(-3), Duration{0});
  EXPECT_EQ(fromSeconds(std::numeric_limits<double>::quiet_NaN()), Duration{0});
  EXPECT_EQ(fromSeconds(1e300), kDurationMax);
  const TimePoint now = SystemClock().now();
  EXPECT_GT(now + fromSeconds(1e18), now) << "a deadline this far away must not lie in the past";
}

}  // namespace dtf
