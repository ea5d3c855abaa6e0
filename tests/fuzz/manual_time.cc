#include "tests/fuzz/manual_time.h"

#include "common/net/timer.h"

namespace dtf::fuzz {

namespace {

kj::TimePoint toKj(TimePoint time) {
  return kj::origin<kj::TimePoint>() + net::toKj(time.time_since_epoch());
}

}  // namespace

ManualTime::ManualTime() : timer_(toKj(clock_.now())) {}

void ManualTime::advanceTo(TimePoint time) {
  clock_.advance(time - clock_.now());
  timer_.advanceTo(toKj(time));
}

void ManualTime::advance(Duration by, const std::function<void()>& settle) {
  const TimePoint until = clock_.now() + by;
  for (int step = 0; step < kStepsMax; ++step) {
    const auto next = timer_.nextEvent();
    KJ_IF_MAYBE (time, next) {
      if (*time > toKj(until)) break;
      advanceTo(TimePoint(net::fromKj(*time - kj::origin<kj::TimePoint>())));
      settle();
    } else {
      break;
    }
  }
  advanceTo(until);
  settle();
}

}  // namespace dtf::fuzz
