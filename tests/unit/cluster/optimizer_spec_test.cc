#include "common/cluster/optimizer_spec.h"

#include <gtest/gtest.h>

#include <string>

#include "common/cluster/optimizer_settings.h"
#include "common/cluster/schema.h"

namespace dtf::cluster {

using yaml::Key;
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
    for (const OptimizerSetting& setting : optimizerSettings(spec)) {
      const double value = settingValue(spec, *setting.key);
      const bool off = value == 0 &&
                       (setting.name.starts_with("clip") || setting.name == "moving_average.decay");
      EXPECT_TRUE(fits(*setting.key, value) || off) << name << "." << setting.name;
    }
  }
  EXPECT_FALSE(isOptimizerKind(0));
  EXPECT_FALSE(isOptimizerKind(kinds + 1));
}

// TensorFlow 1's.
TEST(OptimizerSpec, DefaultsDifferBetweenKindsForTheSameName) {
  using Kind = OptimizerSpec::Kind;
  const auto of = [](Kind kind) { return defaultOptimizer(kind); };
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdagrad, Kind::kMomentum, Kind::kLars})
    EXPECT_EQ(of(kind).learning_rate, 0.01) << optimizerName(kind);
  for (const Kind kind :
       {Kind::kAdam, Kind::kAdamW, Kind::kAdadelta, Kind::kFtrl, Kind::kRmsProp, Kind::kLamb})
    EXPECT_EQ(of(kind).learning_rate, 0.001) << optimizerName(kind);
  EXPECT_EQ(of(Kind::kMomentum).momentum, 0.9);
  EXPECT_EQ(of(Kind::kRmsProp).momentum, 0);
  EXPECT_EQ(of(Kind::kAdam).epsilon, 1e-8);
  EXPECT_EQ(of(Kind::kRmsProp).epsilon, 1e-10);
  EXPECT_EQ(of(Kind::kLars).epsilon, 0);
  EXPECT_EQ(of(Kind::kLamb).epsilon, 1e-6);
  EXPECT_EQ(of(Kind::kLars).weight_decay, 0.0001);
  EXPECT_EQ(of(Kind::kLamb).weight_decay, 0);
}

}  // namespace
}  // namespace dtf::cluster
