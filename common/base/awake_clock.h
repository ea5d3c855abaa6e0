#pragma once

// Time as a loop lives it: what a pause took (SIGSTOP of the whole job, a frozen virtual machine,
// one very long turn of the loop itself) does not count. Leases and deadlines on this clock survive
// a pause: a peer is judged by the time in which it could have been heard.

#include "common/base/check.h"
#include "common/base/clock.h"

namespace dtf {

// Borrows: `clock` (must outlive this).
// Threads: loop-thread only: whoever is awake reads it at least every `read_every`.
class AwakeClock final : public Clock {
 public:
  AwakeClock(const Clock& clock, Duration read_every)
      : clock_(clock), gap_max_(2 * read_every), read_at_(clock.now()) {
    DTF_CHECK(read_every > Duration{0});
  }

  // A longer time than twice `read_every` between two readings counts as that much, whoever reads
  // first.
  TimePoint now() const override {
    const TimePoint real = clock_.now();
    DTF_CHECK(real >= read_at_);
    const Duration gap = real - read_at_;
    if (gap > gap_max_) missed_ += gap - gap_max_;
    read_at_ = real;
    return real - missed_;
  }

  // All that did not count.
  Duration missed() const { return missed_; }

 private:
  const Clock& clock_;
  const Duration gap_max_;
  mutable TimePoint read_at_;
  mutable Duration missed_{};
};

}  // namespace dtf
