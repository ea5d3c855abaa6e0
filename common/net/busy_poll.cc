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
  judge(before, clock_.now());
  return true;
}

void BusyPoll::judge(TimePoint before, TimePoint after) {
  if (after - before >= kTakenForLong) taken_ += after - before;
  const Duration judged = after - judged_since_;
  if (judged < kJudged) return;
  if (taken_ * 2 > judged) paused_until_ = after + kPause;
  judged_since_ = after;
  taken_ = {};
}

}  // namespace dtf::net
