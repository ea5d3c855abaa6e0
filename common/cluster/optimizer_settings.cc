#include "common/cluster/optimizer_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dtf::cluster {

using yaml::Key;
using yaml::Table;
using yaml::ValueType;

namespace {

// Up to here a double holds every whole number.
constexpr double kWholeMax = 9007199254740992.0;

// Skips a field that an earlier table has: learning_rate is also "initial" of the schedule.
void append(std::vector<OptimizerSetting>& settings, const Table& table,
            std::string_view renamed = {}) {
  for (const Key& key : table.keys) {
    const auto same_field = [&](const OptimizerSetting& s) { return s.key->field == key.field; };
    if (!isSetting(key) || std::any_of(settings.begin(), settings.end(), same_field)) continue;
    settings.push_back({renamed.empty() ? key.name : renamed, &key});
  }
}

}  // namespace

std::vector<OptimizerSetting> optimizerSettings(const OptimizerSpec& spec) {
  std::vector<OptimizerSetting> settings;
  append(settings, schema::optimizer(spec.kind));
  append(settings, schema::learningRate(spec.schedule.kind));
  append(settings, schema::kOptimizerCommon);
  append(settings, schema::kMovingAverage, "moving_average.decay");
  return settings;
}

double settingValue(const OptimizerSpec& spec, const Key& key) {
  double result = 0;
  visitField(spec, key, [&](const auto& field) { result = static_cast<double>(field); });
  return result;
}

void setSetting(OptimizerSpec& spec, const Key& key, double value) {
  DTF_CHECK_MSG(holds(key, value), fmt::format("{} = {}", key.name, value));
  visitField(spec, key, [&](auto& field) {
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
  });
}

std::string settingText(const OptimizerSpec& spec, const Key& key) {
  std::string text;
  visitField(spec, key, [&](const auto& field) { text = fmt::format("{}", field); });
  return text;
}

bool holds(const Key& key, double value) {
  if (!std::isfinite(value)) return false;
  if (key.type == ValueType::kBool) return value == 0 || value == 1;
  if (key.type != ValueType::kWhole) return true;
  return value >= 0 && value <= kWholeMax && std::trunc(value) == value;
}

bool fits(const Key& key, double value) {
  if (!holds(key, value)) return false;
  if (key.type == ValueType::kBool) return true;
  if (key.type == ValueType::kWhole) return key.inRange(static_cast<int64_t>(value));
  return key.inRange(value);
}

}  // namespace dtf::cluster
