#pragma once

// When a loop that has nothing to do asks again instead of going to sleep: waking a sleeping core
// costs more than a small message (on a virtual machine 30-60 us).

#include <functional>

#include "common/base/clock.h"

namespace dtf::net {

// Asks again for `window` after the last work, giving way to whoever else wants the core. Where
// others take it for long again and again, the machine is busy: to yield there costs a scheduler's
// slice of milliseconds each time, while one who sleeps is run as soon as its message is there. So
// when half of a while went to them it sleeps for a longer while before it tries again. (The
// tasks of a job on one machine take turns of less than kTakenForLong.)
// Borrows: `clock`.
// Threads: one.
// Blocks: again() for as long as others run in its place.
class BusyPoll {
 public:
  static constexpr Duration kTakenForLong = std::chrono::milliseconds(2);
  static constexpr Duration kJudged = std::chrono::milliseconds(20);
  static constexpr Duration kPause = std::chrono::milliseconds(100);

  // `window` 0: never. `yield` is for tests.
  BusyPoll(Duration window, const Clock& clock, std::function<void()> yield = {});

  // There was something to do.
  void worked() { idle_since_ = window_ > Duration{0} ? clock_.now() : TimePoint{}; }
  // True after it has given way: ask once more. False: sleep.
  bool again();

 private:
  void judge(TimePoint before, TimePoint after);

  const Duration window_;
  const Clock& clock_;
  const std::function<void()> yield_;
  TimePoint idle_since_{};
  TimePoint judged_since_{};
  Duration taken_{};  // by others, for long, since then
  TimePoint paused_until_{};
};

}  // namespace dtf::net
