#include "common/ps/optimizer_check.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "common/base/error.h"
#include "common/cluster/schema.h"

namespace dtf::ps {

namespace {

using cluster::Key;
using cluster::OptimizerSpec;
using cluster::Table;
using cluster::ValueType;

[[noreturn]] void refuseSpec(const std::string& what) {
  throw Error(ErrorCode::kBadConfig, "the declared model is refused: " + what);
}

// The upper bound of a positive number only catches typing mistakes; a bound of 1 is the formula's.
constexpr double kTypingBound = 1e6;

bool fits(const Key& key, double value) {
  if (!std::isfinite(value)) return false;
  return key.inRange(value) || (key.number.max == kTypingBound && value > kTypingBound);
}

// Settings that the table doesn't have are not used.
void checkSettings(const OptimizerSpec& spec, const Table& table) {
  cluster::visitSettings(spec, [&](std::string_view name, const auto& value) {
    using T = std::remove_cvref_t<decltype(value)>;
    const Key* key = table.find(name);
    if (key == nullptr) return;
    bool good = true;
    if constexpr (std::is_same_v<T, double>) {
      const bool off = value == 0 && name.starts_with("clip_by_");
      good = off || fits(*key, value);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      good = value <= INT64_MAX && key->inRange(static_cast<int64_t>(value));
    }
    if (!good) refuseSpec(fmt::format("{} is {}, but must be {}", name, value, key->rangeText()));
  });
}

}  // namespace

void validateOptimizer(const OptimizerSpec& spec) {
  if (!cluster::isOptimizerKind(static_cast<int>(spec.kind)))
    refuseSpec(fmt::format("optimizer kind {}", static_cast<int>(spec.kind)));
  const auto schedule = static_cast<int>(spec.schedule.kind);
  if (schedule < 1 || schedule > static_cast<int>(cluster::LearningRateSchedule::Kind::kCosine))
    refuseSpec(fmt::format("learning-rate schedule kind {}", schedule));
  checkSettings(spec, cluster::schema::optimizer(spec.kind));
  checkSettings(spec, cluster::schema::learningRate(spec.schedule.kind));
  const bool scheduled = spec.schedule.kind != cluster::LearningRateSchedule::Kind::kConstant ||
                         spec.schedule.warmup_steps > 0;
  if (spec.kind == OptimizerSpec::Kind::kFtrl && scheduled)
    refuseSpec("ftrl with a learning-rate schedule: its formula needs one rate throughout");
  if (!(spec.moving_average_decay >= 0 && spec.moving_average_decay < 1))
    refuseSpec(fmt::format("moving_average's decay is {}, but must be at least 0 and less than 1",
                           spec.moving_average_decay));
}

}  // namespace dtf::ps
