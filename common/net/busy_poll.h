#pragma once

// Decides when an idle loop polls again instead of sleeping: waking a sleeping core costs more than
// a small message (on a virtual machine 30-60 us).

#include <functional>

#include "common/base/clock.h"

namespace dtf::net {

// Polls for `window` after the last work, yielding to other threads that want the core. If others
// repeatedly keep the core for long, the machine is busy: each yield then costs a scheduler's slice
// of milliseconds, while a sleeping thread runs as soon as its message arrives. So once others took
// half of an interval, polling pauses for kPause. (The tasks of a job on one machine take turns
// shorter than kTakenForLong.)
// Borrows: `clock`.
// Threads: one.
// Blocks: again(), while other threads run instead.
class BusyPoll {
 public:
  static constexpr Duration kTakenForLong = std::chrono::milliseconds(2);
  static constexpr Duration kJudged = std::chrono::milliseconds(20);
  static constexpr Duration kPause = std::chrono::milliseconds(100);

  // `window` 0 disables polling. `yield` is for tests.
  BusyPoll(Duration window, const Clock& clock, std::function<void()> yield = {});

  // Records that there was work.
  void worked() { idle_since_ = window_ > Duration{0} ? clock_.now() : TimePoint{}; }
  // Yields and returns true: poll once more. Returns false: sleep.
  bool again();

 private:
  void judge(TimePoint before, TimePoint after);

  const Duration window_;
  const Clock& clock_;
  const std::function<void()> yield_;
  TimePoint idle_since_{};
  TimePoint judged_since_{};
  Duration taken_{};  // long stretches taken by others since then
  TimePoint paused_until_{};
};

}  // namespace dtf::net
