#include "common/net/busy_poll.h"

#include <gtest/gtest.h>

namespace dtf::net {
namespace {

using namespace std::chrono_literals;

class BusyPollTest : public ::testing::Test {
 protected:
  // Returns how often it polls before it sleeps, when others take the core for `taken` each time.
  int asks(Duration taken) {
    taken_ = taken;
    poll_.worked();
    int count = 0;
    while (poll_.again()) ++count;
    return count;
  }

  ManualClock clock_;
  Duration taken_{};
  BusyPoll poll_{100us, clock_, [this] { clock_.advance(taken_); }};
};

TEST_F(BusyPollTest, AsksForItsWindowThenSleeps) {
  EXPECT_EQ(asks(10us), 10);
  EXPECT_FALSE(poll_.again());
  EXPECT_EQ(asks(10us), 10) << "work starts the window anew";
}

TEST_F(BusyPollTest, SleepsForAWhileWhereOthersTakeTheCoreForLong) {
  asks(10us);  // ends the period that is judged
  int turns = 0;
  while (asks(3ms) == 1) ++turns;
  EXPECT_EQ(turns, 7) << "20 ms of them";
  EXPECT_EQ(asks(10us), 0);
  clock_.advance(BusyPoll::kPause - 1ms);
  EXPECT_EQ(asks(10us), 0);
  clock_.advance(1ms);
  EXPECT_EQ(asks(10us), 10);
}

TEST_F(BusyPollTest, ShortTurnsOfOthersAreNoReasonToSleep) {
  asks(10us);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(asks(1900us), 1);
  EXPECT_EQ(asks(10us), 10);
}

TEST_F(BusyPollTest, ALongTurnNowAndThenIsNoReasonToSleep) {
  asks(10us);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(asks(3ms), 1);
    clock_.advance(10ms);  // of work
  }
  EXPECT_EQ(asks(10us), 10);
}

TEST_F(BusyPollTest, WithoutAWindowItNeverAsks) {
  BusyPoll never(Duration{0}, clock_);
  never.worked();
  EXPECT_FALSE(never.again());
}

}  // namespace
}  // namespace dtf::net
