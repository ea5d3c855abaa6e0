#pragma once

// Reads and writes the settings of an optimizer by the tables of schema_optimizers.cc, for code
// that treats all settings alike. A value is a double whatever the type of the field: a bool is 0
// or 1, and a count is far below 2^53.

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/cluster/optimizer_spec.h"
#include "common/cluster/schema.h"

namespace dtf::cluster {

// The member of OptimizerSpec that holds a setting. Key::field of these tables is the address of a
// kSettingField: two keys of the same member have the same address.
using SettingField =
    std::variant<double OptimizerSpec::*, bool OptimizerSpec::*, double LearningRateSchedule::*,
                 bool LearningRateSchedule::*, uint64_t LearningRateSchedule::*>;
template <auto kMember>
inline constexpr SettingField kSettingField = kMember;

struct OptimizerSetting {
  std::string_view name;  // "beta1", "moving_average.decay"; unique within an optimizer
  const yaml::Key* key = nullptr;
};

// Returns the settings that the optimizer and the schedule of `spec` use.
std::vector<OptimizerSetting> optimizerSettings(const OptimizerSpec& spec);

inline bool isSetting(const yaml::Key& key) {
  return key.field != nullptr;
}

// Calls visit(field) with the field of `spec` that the key sets: a double, a bool or a uint64_t.
template <class Spec, class Visitor>
void visitField(Spec& spec, const yaml::Key& key, const Visitor& visit) {
  DTF_CHECK_MSG(isSetting(key), std::string(key.name));
  std::visit(
      [&](auto field) {
        if constexpr (requires { spec.*field; }) {
          visit(spec.*field);
        } else if constexpr (requires { spec.schedule.*field; }) {
          visit(spec.schedule.*field);
        }
      },
      *static_cast<const SettingField*>(key.field));
}

double settingValue(const OptimizerSpec& spec, const yaml::Key& key);
// The field must hold `value`: see holds() (DTF_CHECK).
void setSetting(OptimizerSpec& spec, const yaml::Key& key, double value);
// Returns the value as YAML: "0.9", "true", "1000".
std::string settingText(const OptimizerSpec& spec, const yaml::Key& key);

// Whether the key's field can hold `value` without changing it.
bool holds(const yaml::Key& key, double value);
// Whether `value` is within the bounds of the key.
bool fits(const yaml::Key& key, double value);

}  // namespace dtf::cluster
