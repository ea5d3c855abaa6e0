#include "common/net/busy_poll.h"

#include <sched.h>

#include <utility>

namespace dtf::net {

BusyPoll::BusyPoll(Duration window, const Clock& clock, std::function<void()> yield)
    : window_(window), clock_(clock), yield_(std::move(yield)) {
  worked();
}

bool BusyPoll::again() {
  if (window_ <= Duration{0}) return false;
  const TimePoint before = clock_.now();
  if (before < paused_until_ || before - idle_since_ >= window_) return false;
  yield_ ? yield_() : static_cast<void>(::sched_yield());
  const TimePoint after = clock_.now();
  if (after - before >= kTakenForLong) paused_until_ = after + kPause;
  return true;
}

}  // namespace dtf::net
