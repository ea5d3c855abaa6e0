#pragma once

// Time that moves only when a program says so: no input waits, and none depends on how fast the
// machine is.

#include <kj/timer.h>

#include <functional>

#include "common/base/clock.h"

namespace dtf::fuzz {

// A clock and the timers that belong to it.
// Threads: one, with the kj::EventLoop of the promises.
class ManualTime {
 public:
  // A ManualClock's.
  ManualTime();

  const Clock& clock() const { return clock_; }
  kj::Timer& timer() { return timer_; }

  // Goes on by `by`, from timer to timer, and calls `settle` after each, which runs what became
  // runnable; after kStepsMax of them the rest of the time passes at once.
  void advance(Duration by, const std::function<void()>& settle);

  bool idle() { return timer_.nextEvent() == nullptr; }

 private:
  static constexpr int kStepsMax = 24;
  void advanceTo(TimePoint time);

  ManualClock clock_;
  kj::TimerImpl timer_;
};

}  // namespace dtf::fuzz
