#include "common/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/check.h"

namespace dtf::optimizer {

namespace {

using cluster::LearningRateSchedule;
using ScheduleKind = LearningRateSchedule::Kind;

double polynomial(const LearningRateSchedule& s, double rate, double t) {
  double n = static_cast<double>(s.decay_steps);
  if (s.cycle) {
    n *= std::max(1.0, std::ceil(t / n));
  } else {
    t = std::min(t, n);
  }
  return (rate - s.end_learning_rate) * std::pow(1 - t / n, s.power) + s.end_learning_rate;
}

double cosine(const LearningRateSchedule& s, double rate, double t) {
  const double n = static_cast<double>(s.decay_steps);
  const double wave = (1 + std::cos(std::numbers::pi * std::min(t, n) / n)) / 2;
  return rate * ((1 - s.alpha) * wave + s.alpha);
}

}  // namespace

double learningRate(const cluster::OptimizerSpec& spec, uint64_t update) {
  const LearningRateSchedule& s = spec.schedule;
  const double rate = spec.learning_rate;
  DTF_CHECK(s.decay_steps > 0);  // validateOptimizer() requires it
  if (update < s.warmup_steps) {
    return rate * static_cast<double>(update + 1) / static_cast<double>(s.warmup_steps);
  }
  const auto t = static_cast<double>(update - s.warmup_steps);
  const auto n = static_cast<double>(s.decay_steps);
  switch (s.kind) {
    case ScheduleKind::kConstant:
      return rate;
    case ScheduleKind::kExponential:
      return rate * std::pow(s.decay_rate, s.staircase ? std::floor(t / n) : t / n);
    case ScheduleKind::kPolynomial:
      return polynomial(s, rate, t);
    case ScheduleKind::kCosine:
      return cosine(s, rate, t);
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(s.kind)));
}

}  // namespace dtf::optimizer
