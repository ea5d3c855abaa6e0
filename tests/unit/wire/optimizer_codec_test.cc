#include "common/wire/optimizer_codec.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "common/base/error.h"
#include "common/cluster/optimizer_settings.h"

namespace dtf::wire {
namespace {

template <class Spoil>
cluster::OptimizerSpec roundTrip(const cluster::OptimizerSpec& spec, const Spoil& spoil) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<schema::Optimizer>();
  encodeOptimizer(spec, root);
  spoil(root);
  return decodeOptimizer(root.asReader());
}

template <class Spoil>
std::string refusal(const cluster::OptimizerSpec& spec, const Spoil& spoil) {
  try {
    roundTrip(spec, spoil);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

// Each setting has a value of its own, so that a mix-up of two shows.
TEST(OptimizerCodec, EverySettingArrivesAsItself) {
  for (int kind = 1; cluster::isOptimizerKind(kind); ++kind)
    for (int schedule = 1; schedule <= 4; ++schedule)
      for (const double truth : {0.0, 1.0}) {
        auto spec = cluster::defaultOptimizer(static_cast<cluster::OptimizerSpec::Kind>(kind));
        spec.schedule.kind = static_cast<cluster::LearningRateSchedule::Kind>(schedule);
        double next = 1;
        for (const cluster::OptimizerSetting& setting : cluster::optimizerSettings(spec)) {
          const bool is_truth = setting.key->type == yaml::ValueType::kBool;
          cluster::setSetting(spec, *setting.key, is_truth ? truth : ++next);
        }
        EXPECT_EQ(roundTrip(spec, [](auto&) {}), spec) << kind << " " << schedule;
      }
}

TEST(OptimizerCodec, RefusesKindsThatNoVersionHas) {
  const cluster::OptimizerSpec spec;
  for (const uint8_t kind : {0, 11})
    EXPECT_NE(refusal(spec, [=](auto& o) { o.setKind(kind); }), "");
  for (const uint8_t kind : {0, 5})
    EXPECT_NE(refusal(spec, [=](auto& o) { o.setSchedule(kind); }), "");
}

TEST(OptimizerCodec, RefusesSettingsThatAreNotTheKinds) {
  const cluster::OptimizerSpec spec;
  EXPECT_EQ(refusal(spec, [](auto& o) { o.setKind(4); }),
            "the declared model is not valid: 6 settings for an optimizer with 8");
  EXPECT_EQ(refusal(spec, [](auto& o) { o.getSettings()[0].setName("beta1"); }),
            "the declared model is not valid: the optimizer's learning_rate is missing");
  EXPECT_EQ(refusal(spec, [](auto& o) { o.getSettings()[1].setName("learning_rate"); }),
            "the declared model is not valid: the optimizer's weight_decay is missing")
      << "the same one twice";
  EXPECT_NE(refusal(spec, [](auto& o) { o.initSettings(1 << 20); }), "");
}

TEST(OptimizerCodec, RefusesValuesThatTheSettingCannotHold) {
  auto spec = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kMomentum);
  const auto with = [&](std::string_view name, double value) {
    return refusal(spec, [&](auto& o) {
      for (auto setting : o.getSettings())
        if (setting.getName().asReader() == kj::StringPtr(name.data(), name.size()))
          setting.setValue(value);
    });
  };
  EXPECT_EQ(with("learning_rate", std::numeric_limits<double>::quiet_NaN()),
            "the declared model is not valid: the optimizer's learning_rate cannot be nan");
  EXPECT_NE(with("momentum", std::numeric_limits<double>::infinity()), "");
  EXPECT_NE(with("use_nesterov", 0.5), "");
  EXPECT_NE(with("warmup_steps", 1.5), "");
  EXPECT_NE(with("warmup_steps", -1), "");
  EXPECT_NE(with("warmup_steps", 1e18), "");
  EXPECT_EQ(with("warmup_steps", 7), "");
}

}  // namespace
}  // namespace dtf::wire
