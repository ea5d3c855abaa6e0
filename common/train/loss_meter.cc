#include "common/train/loss_meter.h"

#include <chrono>
#include <utility>

namespace dtf::train {

void LossMeter::add(uint64_t step, double loss, ps::Outcome outcome) {
  if (open_.step != step)
    open_ = {step, 0, 0};  // what was queued for a step that went by without it is void
  if (outcome == ps::Outcome::kStale) return;
  open_.sum += loss;
  ++open_.count;
  if (outcome == ps::Outcome::kApplied) last_ = std::exchange(open_, {step + 1, 0, 0});
}

void ReportClock::start(uint64_t global_step, TimePoint now) {
  step_ = global_step;
  since_ = now;
}

std::optional<ReportClock::Rates> ReportClock::due(uint64_t global_step, bool done, TimePoint now) {
  constexpr Duration kEvery = std::chrono::milliseconds(500);
  const bool passed = every_steps_ > 0 ? global_step / every_steps_ != step_ / every_steps_
                                       : now - since_ >= kEvery;
  if (!passed && !done) return std::nullopt;
  const double seconds = toSeconds(now - since_);
  const auto steps = static_cast<double>(global_step - step_);
  start(global_step, now);
  if (seconds <= 0) return Rates{};
  return Rates{steps / seconds, steps / seconds * examples_};
}

}  // namespace dtf::train
