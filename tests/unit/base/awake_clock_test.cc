#include "common/base/awake_clock.h"

#include <gtest/gtest.h>

namespace dtf {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AwakeClock, GoesWithTheRealOneWhileItIsRead) {
  ManualClock real;
  const AwakeClock awake(real, milliseconds(250));
  const TimePoint begin = awake.now();
  for (int i = 0; i < 100; ++i) {
    real.advance(milliseconds(250 + i));
    awake.now();
  }
  EXPECT_EQ(awake.now() - begin, milliseconds(25'000 + 99 * 50));
  EXPECT_EQ(awake.missed(), Duration{0});
}

TEST(AwakeClock, APauseCountsAsTwoReadings) {
  ManualClock real;
  const AwakeClock awake(real, milliseconds(250));
  const TimePoint begin = awake.now();
  real.advance(seconds(3600));
  EXPECT_EQ(awake.now() - begin, milliseconds(500));
  real.advance(milliseconds(100));
  EXPECT_EQ(awake.now() - begin, milliseconds(600)) << "then it goes on";
  EXPECT_EQ(awake.missed(), seconds(3600) - milliseconds(500));
}

}  // namespace
}  // namespace dtf
