// The environment is read once, so each case is a death test with a process of its own.

#include "common/base/failpoint.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "common/base/error.h"

namespace dtf {

namespace {

constexpr char kPoint[] = "checkpoint.after_rename";

// Passes the point `times` times and exits with 0, or with 3 and the message for an Error.
[[noreturn]] void pass(const char* plan, int times = 1) {
  ::setenv("DTF_FAILPOINTS", plan, 1);
  try {
    for (int i = 0; i < times; ++i) failpoint(kPoint);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    std::_Exit(3);
  }
  std::_Exit(0);
}

}  // namespace

TEST(Failpoint, NamesAreDistinct) {
  const auto names = failpointNames();
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
}

TEST(FailpointDeathTest, DoesWhatTheEnvironmentAsks) {
  using ::testing::ExitedWithCode;
  using ::testing::KilledBySignal;
  EXPECT_EXIT(pass(""), ExitedWithCode(0), "");
  EXPECT_EXIT(pass("checkpoint.after_rename=kill"), KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(pass("checkpoint.after_rename=term"), KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(pass("checkpoint.after_shard_close=kill"), ExitedWithCode(0), "");
  EXPECT_EXIT(pass("checkpoint.after_rename=error"), ExitedWithCode(3), "after_rename");
  EXPECT_EXIT(pass("checkpoint.after_shard_close=kill;checkpoint.after_rename=error"),
              ExitedWithCode(3), "after_rename");
  EXPECT_EXIT(pass("checkpoint.after_rename=sleep:1"), ExitedWithCode(0), "");
}

TEST(FailpointDeathTest, CountsPassages) {
  EXPECT_EXIT(pass("checkpoint.after_rename=kill@3", 2), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(pass("checkpoint.after_rename=kill@3", 3), ::testing::KilledBySignal(SIGKILL), "");
}

TEST(FailpointDeathTest, RefusesWhatItDoesNotUnderstand) {
  const auto refused = ::testing::ExitedWithCode(3);
  EXPECT_EXIT(pass("checkpoint.after_renam=kill"), refused,
              "no such point; did you mean checkpoint.after_rename");
  EXPECT_EXIT(pass("checkpoint.after_rename"), refused, "NAME=ACTION");
  EXPECT_EXIT(pass("checkpoint.after_rename=explode"), refused,
              "kill, term, stop, sleep:MS or error");
  EXPECT_EXIT(pass("checkpoint.after_rename=sleep:x"), refused, "'x' is not a number");
  EXPECT_EXIT(pass("checkpoint.after_rename=kill@-1"), refused, "'-1' is not a number");
}

TEST(FailpointDeathTest, AnUnknownNameInTheCodeIsABug) {
  EXPECT_DEATH(failpoint("no.such.point"), "no.such.point");
}

}  // namespace dtf
