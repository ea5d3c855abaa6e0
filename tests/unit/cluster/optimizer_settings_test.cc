#include "common/cluster/optimizer_settings.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace dtf::cluster {

using yaml::Key;
using yaml::ValueType;
namespace {

using Kind = OptimizerSpec::Kind;
using ScheduleKind = LearningRateSchedule::Kind;

std::string names(Kind kind, ScheduleKind schedule) {
  OptimizerSpec spec = defaultOptimizer(kind);
  spec.schedule.kind = schedule;
  std::string text;
  for (const OptimizerSetting& setting : optimizerSettings(spec))
    text += std::string(setting.name) + " ";
  return text;
}

TEST(OptimizerSettings, AreThoseThatTheKindAndItsScheduleUse) {
  EXPECT_EQ(names(Kind::kGradientDescent, ScheduleKind::kConstant),
            "learning_rate weight_decay warmup_steps clip_by_value clip_by_global_norm "
            "moving_average.decay ");
  EXPECT_EQ(names(Kind::kRmsProp, ScheduleKind::kExponential),
            "learning_rate decay momentum epsilon centered weight_decay decay_steps decay_rate "
            "staircase warmup_steps clip_by_value clip_by_global_norm moving_average.decay ");
}

// Two settings of one name or of one field would overwrite each other on the wire.
TEST(OptimizerSettings, EveryFieldIsSetByOneNameOfEachOptimizer) {
  OptimizerSpec all;
  for (int kind = 1; isOptimizerKind(kind); ++kind)
    for (int schedule = 1; schedule <= 4; ++schedule) {
      OptimizerSpec spec;
      spec.kind = static_cast<Kind>(kind);
      spec.schedule.kind = static_cast<ScheduleKind>(schedule);
      std::set<std::string_view> seen;
      double next = 1;
      for (const OptimizerSetting& setting : optimizerSettings(spec)) {
        EXPECT_TRUE(seen.insert(setting.name).second) << setting.name;
        const double value = setting.key->type == ValueType::kBool ? 1 : ++next;
        setSetting(spec, *setting.key, value);
        setSetting(all, *setting.key, 1);
      }
      next = 1;
      for (const OptimizerSetting& setting : optimizerSettings(spec)) {
        const double value = setting.key->type == ValueType::kBool ? 1 : ++next;
        EXPECT_EQ(settingValue(spec, *setting.key), value) << setting.name;
      }
    }
  // A field without a name in the tables can't be set at all: the struct has 27 times 1.
  OptimizerSpec ones;
  ones.learning_rate = ones.momentum = ones.initial_accumulator_value = ones.rho = ones.beta1 =
      ones.beta2 = ones.epsilon = ones.decay = ones.learning_rate_power = ones.eeta =
          ones.weight_decay = ones.clip_by_value = ones.clip_by_global_norm =
              ones.moving_average_decay = ones.l1_regularization_strength =
                  ones.l2_regularization_strength = ones.l2_shrinkage_regularization_strength = 1;
  ones.use_nesterov = ones.centered = true;
  ones.schedule = {ScheduleKind::kConstant, 1, 1, 1, true, 1, 1, true, 1};
  EXPECT_EQ(all, ones);
}

TEST(OptimizerSettings, AreWrittenAsTheYamlHasThem) {
  OptimizerSpec spec = defaultOptimizer(Kind::kMomentum);
  spec.use_nesterov = true;
  spec.schedule.warmup_steps = 1'000'000;
  EXPECT_EQ(settingText(spec, schema::kMomentum.at("use_nesterov")), "true");
  EXPECT_EQ(settingText(spec, schema::kMomentum.at("momentum")), "0.9");
  EXPECT_EQ(settingText(spec, schema::kConstantRate.at("warmup_steps")), "1000000");
}

TEST(OptimizerSettings, HoldWhatTheirFieldsCan) {
  const Key& truth = schema::kMomentum.at("use_nesterov");
  const Key& count = schema::kConstantRate.at("warmup_steps");
  const Key& real = schema::kMomentum.at("momentum");
  EXPECT_TRUE(holds(truth, 0) && holds(truth, 1) && !holds(truth, 2) && !holds(truth, 0.5));
  EXPECT_TRUE(holds(count, 0) && holds(count, 9007199254740992.0));
  EXPECT_FALSE(holds(count, -1) || holds(count, 0.5) || holds(count, 1e300));
  EXPECT_TRUE(holds(real, -1e300));
  EXPECT_FALSE(fits(real, 1));
  for (const Key* key : {&truth, &count, &real}) {
    EXPECT_FALSE(holds(*key, std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(holds(*key, std::numeric_limits<double>::infinity()));
  }
}

TEST(OptimizerSettings, TheReferenceSaysTheDefaultThatTheKindHas) {
  const std::string reference = keyReference();
  const size_t rmsprop = reference.find("train.optimizer.rmsprop");
  const size_t momentum = reference.find("  momentum ", rmsprop);
  EXPECT_EQ(reference.substr(reference.find("; default", momentum), 12), "; default 0\n");
  EXPECT_NE(reference.find("on the ps; default none"), std::string::npos);
}

TEST(OptimizerSettingsDeathTest, AKeyThatSetsNothingHasNoValue) {
  EXPECT_DEATH(settingValue({}, schema::kOptimizerCommon.at("moving_average")), "moving_average");
  OptimizerSpec spec;
  EXPECT_DEATH(setSetting(spec, schema::kMomentum.at("use_nesterov"), 2), "use_nesterov = 2");
}

}  // namespace
}  // namespace dtf::cluster
