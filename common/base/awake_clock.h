#pragma once

// A clock that stands still while the process does: during SIGSTOP of the whole job, a frozen
// virtual machine, or one very long turn of the loop. Leases and deadlines on this clock survive a
// pause: a peer is judged only by the time in which this process could have received its messages.

#include "common/base/check.h"
#include "common/base/clock.h"

namespace dtf {

// Borrows: `clock` (must outlive this).
// Threads: loop-thread only. The loop reads the clock at least every `read_every`.
class AwakeClock final : public Clock {
 public:
  AwakeClock(const Clock& clock, Duration read_every)
      : clock_(clock), gap_max_(2 * read_every), read_at_(clock.now()) {
    DTF_CHECK(read_every > Duration{0});
  }

  // Returns the time without pauses. A gap between two readings counts as 2 * `read_every` at most.
  TimePoint now() const override {
    const TimePoint real = clock_.now();
    DTF_CHECK(real >= read_at_);
    const Duration gap = real - read_at_;
    if (gap > gap_max_) missed_ += gap - gap_max_;
    read_at_ = real;
    return real - missed_;
  }

  // Returns the sum of all pauses.
  Duration missed() const { return missed_; }

 private:
  const Clock& clock_;
  const Duration gap_max_;
  mutable TimePoint read_at_;
  mutable Duration missed_{};
};

}  // namespace dtf
