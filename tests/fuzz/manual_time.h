#pragma once

// Time that moves only by a program's calls: no input waits, and none depends on the speed of the
// machine.

#include <kj/timer.h>

#include <functional>

#include "common/base/clock.h"

namespace dtf::fuzz {

// A clock and the timers that belong to it.
// Threads: one, with the kj::EventLoop of the promises.
class ManualTime {
 public:
  // Begins at a ManualClock's time.
  ManualTime();

  const Clock& clock() const { return clock_; }
  kj::Timer& timer() { return timer_; }

  // Moves by `by`, from timer to timer, and calls `settle` after each, which runs everything that
  // became runnable. After kStepsMax timers the rest of the time passes at once.
  void advance(Duration by, const std::function<void()>& settle);

  bool idle() { return timer_.nextEvent() == nullptr; }

 private:
  static constexpr int kStepsMax = 24;
  void advanceTo(TimePoint time);

  ManualClock clock_;
  kj::TimerImpl timer_;
};

}  // namespace dtf::fuzz
