#include "common/train/report_clock.h"

#include <chrono>

#include "common/base/check.h"

namespace dtf::train {

void ReportClock::start(uint64_t global_step, TimePoint now) {
  step_ = global_step;
  measureFrom(global_step, now);
}

std::optional<ReportClock::Rates> ReportClock::due(uint64_t global_step, bool wanted,
                                                   TimePoint now) {
  DTF_CHECK(now >= since_);
  constexpr Duration kEvery = std::chrono::milliseconds(500);
  const bool passed = every_steps_ > 0 ? global_step / every_steps_ != step_ / every_steps_
                                       : now - since_ >= kEvery;
  if (!passed && !wanted) return std::nullopt;
  const double seconds = toSeconds(now - since_);
  const auto steps = static_cast<double>(global_step - measured_from_);
  start(global_step, now);
  if (seconds <= 0) return Rates{};
  return Rates{steps / seconds, steps / seconds * examples_};
}

}  // namespace dtf::train
