#include "common/train/stop_request.h"

#include <gtest/gtest.h>

#include <chrono>

namespace dtf::train {
namespace {

TEST(StopRequest, GivesUpOnlyWhileItsThreadRecovers) {
  StopRequest stop;
  const auto gives_up = stop.givesUp();
  {
    const StopRequest::Recovering recovering(stop);
    EXPECT_FALSE(*gives_up);
    stop.ask();
    EXPECT_TRUE(*gives_up);
  }
  EXPECT_TRUE(stop.isSet());
  EXPECT_FALSE(*gives_up) << "the end of the run isn't given up";
  const StopRequest::Recovering again(stop);
  EXPECT_TRUE(*gives_up) << "the request was before";
}

TEST(StopRequest, TheEndOfTheRunGivesUpNothing) {
  StopRequest stop;
  const StopRequest::Recovering recovering(stop);
  stop.endRun();
  EXPECT_TRUE(stop.isSet());
  EXPECT_FALSE(*stop.givesUp());
}

TEST(StopRequest, EndsAWait) {
  StopRequest stop;
  const SystemClock clock;
  stop.ask();
  stop.wait(clock, clock.now() + std::chrono::hours(1));
}

}  // namespace
}  // namespace dtf::train
