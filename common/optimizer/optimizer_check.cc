#include "common/optimizer/optimizer_check.h"

#include <fmt/format.h>

#include "common/base/error.h"
#include "common/cluster/optimizer_settings.h"

namespace dtf::optimizer {

namespace {

using cluster::OptimizerSpec;

[[noreturn]] void refuseSpec(const std::string& what) {
  throw Error(ErrorCode::kBadConfig, "the declared model is refused: " + what);
}

// The upper bound of a positive number only catches typing mistakes; a bound of 1 is the formula's.
constexpr double kTypingBound = 1e6;

// Whether `value` is good. A default is, even out of bounds: a file may leave the setting out.
bool works(const yaml::Key& key, double value, double by_default) {
  const bool beyond_typing = key.number.max == kTypingBound && value > kTypingBound;
  return cluster::fits(key, value) || value == by_default ||
         (beyond_typing && cluster::holds(key, value));
}

void checkSettings(const OptimizerSpec& spec) {
  const OptimizerSpec defaults = cluster::defaultOptimizer(spec.kind);
  for (const auto& [name, key] : cluster::optimizerSettings(spec)) {
    const double value = cluster::settingValue(spec, *key);
    if (works(*key, value, cluster::settingValue(defaults, *key))) continue;
    refuseSpec(fmt::format("{} is {}, but must be {}", name, cluster::settingText(spec, *key),
                           key->rangeText()));
  }
}

}  // namespace

void validateOptimizer(const OptimizerSpec& spec) {
  if (!cluster::isOptimizerKind(static_cast<int>(spec.kind)))
    refuseSpec(fmt::format("optimizer kind {}", static_cast<int>(spec.kind)));
  const auto schedule = static_cast<int>(spec.schedule.kind);
  if (schedule < 1 || schedule > static_cast<int>(cluster::LearningRateSchedule::Kind::kCosine))
    refuseSpec(fmt::format("learning-rate schedule kind {}", schedule));
  checkSettings(spec);
  const bool scheduled = spec.schedule.kind != cluster::LearningRateSchedule::Kind::kConstant ||
                         spec.schedule.warmup_steps > 0;
  if (spec.kind == OptimizerSpec::Kind::kFtrl && scheduled)
    refuseSpec("ftrl with a learning-rate schedule: its formula needs one rate throughout");
}

}  // namespace dtf::optimizer
