#pragma once

// The settings of an optimizer, one by one: what is done with all of them alike is done over the
// tables of schema_optimizers.cc. A setting's number is a double whatever the type of its field: a
// truth is 0 or 1, and a count is far below 2^53.

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/cluster/optimizer_spec.h"
#include "common/cluster/schema.h"

namespace dtf::cluster {

// Where OptimizerSpec keeps a setting. A key of these tables has the address of a kSettingField as
// its field: the same member, the same address.
using SettingField =
    std::variant<double OptimizerSpec::*, bool OptimizerSpec::*, double LearningRateSchedule::*,
                 bool LearningRateSchedule::*, uint64_t LearningRateSchedule::*>;
template <auto kMember>
inline constexpr SettingField kSettingField = kMember;

struct OptimizerSetting {
  std::string_view name;  // "beta1", "moving_average.decay"; no two of one optimizer are alike
  const yaml::Key* key = nullptr;
};

// Those that the kind of `spec`, and the kind of its schedule, make use of.
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
// `value` must be one that the field can hold: see holds().
void setSetting(OptimizerSpec& spec, const yaml::Key& key, double value);
// As the YAML has it: "0.9", "true", "1000".
std::string settingText(const OptimizerSpec& spec, const yaml::Key& key);

// Whether the key's field can hold `value` without changing it.
bool holds(const yaml::Key& key, double value);
// Whether `value` is within the bounds of the key.
bool fits(const yaml::Key& key, double value);

}  // namespace dtf::cluster
