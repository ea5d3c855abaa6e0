#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "common/base/check.h"
#include "common/cluster/optimizer_settings.h"
#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

using yaml::Alternative;
using yaml::Key;
using yaml::MapReader;
using yaml::readAlternative;
using yaml::readNumber;
using yaml::Report;
using yaml::reportType;
using yaml::Table;
using yaml::ValueType;
using yaml::YamlNode;

namespace {

using Kind = OptimizerSpec::Kind;

constexpr std::string_view kRateText = "a number, or {schedule: {settings}}";

// Returns the kind with the name of the alternative's key.
template <class E, class NameOf>
E kindOf(const Alternative& chosen, NameOf name_of) {
  constexpr int kKindsMax = 64;
  DTF_CHECK(chosen.key != nullptr);
  int kind = 1;
  while (name_of(static_cast<E>(kind)) != chosen.key->name) {
    ++kind;
    DTF_CHECK_MSG(kind < kKindsMax, std::string(chosen.key->name));  // the table has one more name
  }
  return static_cast<E>(kind);
}

// Reads each setting of `table` that is a plain value.
void readSettings(const MapReader& reader, const Table& table, OptimizerSpec& spec) {
  for (const Key& key : table.keys) {
    if (!isSetting(key) || key.type == ValueType::kNumberOrMap) continue;
    visitField(spec, key, [&](auto& value) {
      using T = std::remove_reference_t<decltype(value)>;
      if constexpr (std::is_same_v<T, bool>) {
        reader.boolean(key.name, value);
      } else if constexpr (std::is_same_v<T, double>) {
        reader.number(key.name, value);
      } else {
        reader.whole(key.name, value);
      }
    });
  }
}

void readSchedule(const YamlNode& node, OptimizerSpec& spec, Report& report) {
  const std::optional<Alternative> chosen =
      readAlternative(node, schema::kLearningRate, "learning-rate schedule", report);
  if (!chosen) return;
  spec.schedule.kind = kindOf<LearningRateSchedule::Kind>(*chosen, scheduleName);
  const Table& table = schema::learningRate(spec.schedule.kind);
  const MapReader reader(chosen->settings, table, chosen->key->name, report);
  readSettings(reader, table, spec);
}

void readRate(const MapReader& reader, const Table& table, OptimizerSpec& spec, Report& report) {
  const Key& key = table.at("learning_rate");
  if (key.type != ValueType::kNumberOrMap) return;
  const YamlNode* node = reader.find(key.name);
  if (node == nullptr) return;
  if (node->isMap()) return readSchedule(*node, spec, report);
  if (!node->isScalar()) return reportType(kRateText, key.name, *node, report);
  spec.learning_rate = readNumber(*node, key, report).value_or(spec.learning_rate);
}

}  // namespace

OptimizerSpec readOptimizer(const YamlNode& node, Report& report) {
  const std::optional<Alternative> chosen =
      readAlternative(node, schema::kOptimizers, "optimizer", report);
  if (!chosen) return {};
  OptimizerSpec spec = defaultOptimizer(kindOf<Kind>(*chosen, optimizerName));
  const Table& table = schema::optimizer(spec.kind);
  const MapReader reader(chosen->settings, table, chosen->key->name, report);
  readRate(reader, table, spec, report);
  readSettings(reader, table, spec);
  readSettings(reader, schema::kOptimizerCommon, spec);
  if (const YamlNode* average = reader.find("moving_average"))
    readSettings(MapReader(*average, schema::kMovingAverage, "moving_average", report),
                 schema::kMovingAverage, spec);
  return spec;
}

}  // namespace dtf::cluster
