#pragma once

// The time of a worker's steps, by phase.

#include <cstdint>
#include <utility>

#include "common/base/clock.h"
#include "common/replication/phase_times.h"
#include "common/train/step_times.h"

namespace dtf::train {

// A worker is in one phase at any time, so the phases of a step add up to its length. A step begins
// with the answer of the one before.
// Borrows: `clock`, which must outlive it.
// Threads: thread-compatible.
// Blocks: never. Allocates nothing.
class StepClock {
 public:
  explicit StepClock(const Clock& clock) : clock_(clock) {}

  // Begins a step. A step that has not ended counts nowhere.
  void start();
  // Enters a phase; returns the one before.
  replication::Phase enter(replication::Phase next);
  // The worker has waited for so long in the last time in kSend.
  void noteWaited(Duration waited);
  // Ends a batch and, if it is the last one of its step, the step. Returns the time.
  TimePoint endBatch(bool ends_step);

  // The phase lasts as long as this object; then the one before goes on.
  class Section {
   public:
    Section(StepClock& clock, replication::Phase phase)
        : clock_(clock), before_(clock.enter(phase)) {}
    ~Section() { clock_.enter(before_); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    StepClock& clock_;
    const replication::Phase before_;
  };

  const StepTimes& batches() const { return batches_; }            // lengths, without evaluations
  const replication::PhaseTimes& last() const { return last_; }    // of the last step
  const replication::PhaseTimes& total() const { return total_; }  // of all steps
  // Returns the mean of a step since the last call; if none has ended since, the one before.
  replication::PhaseTimes takeMean();

 private:
  Duration spendTo(TimePoint now);

  const Clock& clock_;
  replication::Phase phase_ = replication::Phase::kCompute;
  TimePoint since_{};  // of the phase
  Duration sent_{0};   // the last time in kSend
  Duration batch_{0};  // so far, without evaluations
  replication::PhaseTimes step_, last_, total_, meant_, mean_;
  uint64_t steps_ = 0, meant_steps_ = 0;
  StepTimes batches_;
};

}  // namespace dtf::train
