#include "common/train/step_clock.h"

#include <algorithm>

namespace dtf::train {

using replication::Phase;

void StepClock::start() {
  step_ = {};
  batch_ = Duration{0};
  phase_ = Phase::kCompute;
  since_ = clock_.now();
}

Duration StepClock::spendTo(TimePoint now) {
  const Duration spent = now - std::exchange(since_, now);
  step_[phase_] += spent;
  if (phase_ != Phase::kEvaluate) batch_ += spent;
  return spent;
}

Phase StepClock::enter(Phase next) {
  const Duration spent = spendTo(clock_.now());
  if (phase_ == Phase::kSend) sent_ = spent;
  return std::exchange(phase_, next);
}

void StepClock::noteWaited(Duration waited) {
  batches_.exchanges += toSeconds(sent_);
  const Duration moved = std::clamp(waited, Duration{0}, std::exchange(sent_, Duration{0}));
  step_[Phase::kSend] -= moved;
  step_[Phase::kWait] += moved;
}

TimePoint StepClock::endBatch(bool ends_step) {
  const TimePoint now = clock_.now();
  spendTo(now);
  batches_.add(std::exchange(batch_, Duration{0}));
  if (!ends_step) return now;
  last_ = std::exchange(step_, {});
  total_ += last_;
  ++steps_;
  return now;
}

replication::PhaseTimes StepClock::takeMean() {
  const uint64_t steps = steps_ - meant_steps_;
  if (steps == 0) return mean_;
  mean_ = total_ - meant_;
  for (Duration& each : mean_.each) each /= static_cast<int64_t>(steps);
  meant_ = total_;
  meant_steps_ = steps_;
  return mean_;
}

}  // namespace dtf::train
