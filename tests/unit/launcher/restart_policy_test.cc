#include "launcher/restart_policy.h"

#include <gtest/gtest.h>

#include <csignal>

namespace dtf::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const ExitStatus kKilled{0, SIGKILL};
const ExitStatus kCrashed{0, SIGSEGV};
constexpr uint64_t kSeed = 7;
const TimePoint kStart = TimePoint{} + seconds(1000);

TEST(RestartPolicy, ATaskThatWasKilledIsStartedAgainSoon) {
  RestartPolicy policy({}, kSeed);
  const std::optional<Duration> pause = policy.onFailure(kKilled, minutes(5), kStart);
  ASSERT_TRUE(pause.has_value());
  EXPECT_GE(*pause, milliseconds(100));
  EXPECT_LE(*pause, milliseconds(200));
  EXPECT_EQ(policy.restarts(), 1u);
}

TEST(RestartPolicy, WhatWouldFailAgainIsNotStartedAgain) {
  for (const int code : {1, 2, 65, 73, 77, 78, 124, 128 + SIGTERM, 128 + SIGINT}) {
    RestartPolicy policy({}, kSeed);
    EXPECT_FALSE(policy.onFailure({code, 0}, minutes(5), kStart)) << "exit code " << code;
  }
  for (const int code : {69, 70, kPausedExitCode, 137}) {
    RestartPolicy policy({}, kSeed);
    EXPECT_TRUE(policy.onFailure({code, 0}, minutes(5), kStart)) << "exit code " << code;
  }
}

TEST(RestartPolicy, ATaskThatNeverWasReadyIsNotStartedAgain) {
  RestartPolicy policy({}, kSeed);
  EXPECT_FALSE(policy.onFailure(kKilled, std::nullopt, kStart));
  EXPECT_EQ(policy.restarts(), 0u);
}

TEST(RestartPolicy, ABudgetOfNoneIsNone) {
  RestartPolicy policy({.max = 0}, kSeed);
  EXPECT_FALSE(policy.onFailure(kKilled, minutes(5), kStart));
}

TEST(RestartPolicy, ATaskThatFailsAllTheTimeIsGivenUp) {
  RestartPolicy policy({.max = 3}, kSeed);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(policy.onFailure(kKilled, seconds(0), kStart));
  EXPECT_FALSE(policy.onFailure(kKilled, seconds(0), kStart));
  EXPECT_EQ(policy.restarts(), 3u);
}

TEST(RestartPolicy, TheBudgetRefillsWithTime) {
  RestartPolicy policy({.max = 2, .refill = minutes(10)}, kSeed);
  TimePoint now = kStart;
  EXPECT_TRUE(policy.onFailure(kKilled, seconds(1), now));
  EXPECT_TRUE(policy.onFailure(kKilled, seconds(1), now));
  now += minutes(4);
  EXPECT_FALSE(policy.onFailure(kKilled, seconds(1), now)) << "a restart takes five minutes";
  now += minutes(1);
  EXPECT_TRUE(policy.onFailure(kKilled, seconds(1), now));
}

TEST(RestartPolicy, WhatIsSpentIsNeverMoreThanTheBudget) {
  RestartPolicy policy({.max = 2, .refill = minutes(10)}, kSeed);
  TimePoint now = kStart;
  policy.onFailure(kKilled, seconds(1), now);
  EXPECT_EQ(policy.spent(), 1u);
  for (int i = 0; i < 5; ++i) policy.onFailure(kKilled, seconds(1), now += minutes(5));
  EXPECT_EQ(policy.restarts(), 6u);
  EXPECT_LE(policy.spent(), 2u) << "a message says how many of two";
}

TEST(RestartPolicy, PausesGrowToTheirBoundAndAreNotAllAlike) {
  const RestartLimits limits{.max = 1000};
  Duration longest{};
  Duration longest_first{};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RestartPolicy policy(limits, seed);
    for (int i = 0; i < 20; ++i) {
      const Duration pause = *policy.onFailure(kCrashed, seconds(0), kStart);
      ASSERT_GE(pause, limits.pause_min);
      ASSERT_LE(pause, limits.pause_max);
      longest = std::max(longest, pause);
      if (i == 0) longest_first = std::max(longest_first, pause);
    }
  }
  EXPECT_GT(longest, seconds(25));
  EXPECT_LE(longest_first, milliseconds(200));
}

TEST(RestartPolicy, ATaskThatRanForLongPausesAsAtFirst) {
  RestartPolicy policy({.max = 1000}, kSeed);
  for (int i = 0; i < 12; ++i) policy.onFailure(kCrashed, seconds(0), kStart);
  EXPECT_LE(*policy.onFailure(kCrashed, minutes(1), kStart), milliseconds(200));
}

// A steady rate of kills costs only the pause and the start after each kill.
TEST(RestartPolicy, PausesDoNotGrowForATaskThatIsKilledFromOutside) {
  RestartPolicy policy({.max = 1000}, kSeed);
  for (int i = 0; i < 40; ++i)
    EXPECT_LE(*policy.onFailure(kKilled, seconds(5), kStart), milliseconds(200));
  // The pauses don't shrink for a task that fails by itself in between.
  Duration longest{};
  for (int i = 0; i < 60; ++i) {
    longest = std::max(longest, *policy.onFailure(kCrashed, seconds(1), kStart));
    EXPECT_LE(*policy.onFailure(kKilled, seconds(1), kStart), milliseconds(200));
  }
  EXPECT_GT(longest, seconds(20));
}

TEST(RestartPolicy, AProcessThatTheKernelKillsForMemoryFailsByItself) {
  RestartPolicy policy({.max = 1000}, kSeed);
  Duration longest{};
  for (int i = 0; i < 60; ++i)
    longest = std::max(longest, *policy.onFailure({0, SIGKILL, true}, seconds(1), kStart));
  EXPECT_GT(longest, seconds(20));
}

}  // namespace
}  // namespace dtf::launcher
