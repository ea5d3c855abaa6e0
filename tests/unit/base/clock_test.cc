#include "common/base/clock.h"

#include <gtest/gtest.h>

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

}  // namespace dtf
