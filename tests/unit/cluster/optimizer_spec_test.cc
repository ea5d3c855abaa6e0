#include "common/cluster/optimizer_spec.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/cluster/schema.h"

namespace dtf::cluster {
namespace {

TEST(OptimizerSpec, EveryKindHasANameASchemaAndDefaultsInsideItsBounds) {
  int kinds = 0;
  for (const Key& key : schema::kOptimizers.keys) kinds += key.available ? 1 : 0;
  for (int kind = 1; kind <= kinds; ++kind) {
    ASSERT_TRUE(isOptimizerKind(kind));
    OptimizerSpec spec = defaultOptimizer(static_cast<OptimizerSpec::Kind>(kind));
    const std::string name(optimizerName(spec.kind));
    EXPECT_EQ(schema::optimizer(spec.kind).path, "train.optimizer." + name);
    EXPECT_TRUE(schema::kOptimizers.at(name).available);
    visitSettings(spec, [&](std::string_view setting, auto& value) {
      const Key* key = schema::optimizer(spec.kind).find(setting);
      const bool off = setting.starts_with("clip") && value == 0;
      if (key != nullptr && key->type == ValueType::kNumber && !off) {
        EXPECT_TRUE(key->inRange(static_cast<double>(value))) << name << "." << setting;
      }
    });
  }
  EXPECT_FALSE(isOptimizerKind(0));
  EXPECT_FALSE(isOptimizerKind(kinds + 1));
}

TEST(OptimizerSpec, EverySettingOfTheSchemaIsVisitedOnce) {
  OptimizerSpec spec;
  std::set<std::string, std::less<>> visited;
  visitSettings(spec, [&](std::string_view name, auto&) {
    EXPECT_TRUE(visited.emplace(name).second) << name;
  });
  const auto expectVisited = [&](const Table& table) {
    for (const Key& key : table.keys)
      if (key.name != "initial" && key.name != "moving_average") {
        EXPECT_TRUE(visited.contains(key.name)) << table.path << "." << key.name;
      }
  };
  for (int kind = 1; isOptimizerKind(kind); ++kind)
    expectVisited(schema::optimizer(static_cast<OptimizerSpec::Kind>(kind)));
  for (int kind = 1; kind <= 4; ++kind)
    expectVisited(schema::learningRate(static_cast<LearningRateSchedule::Kind>(kind)));
  expectVisited(schema::kOptimizerCommon);
}

}  // namespace
}  // namespace dtf::cluster
