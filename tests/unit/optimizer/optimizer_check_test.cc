#include "common/optimizer/optimizer_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "common/base/error.h"

namespace dtf::optimizer {
namespace {

using cluster::LearningRateSchedule;
using cluster::OptimizerSpec;
using Kind = OptimizerSpec::Kind;

// Returns why the kind's defaults with one change are rejected; "" if they pass.
std::string refusal(Kind kind, const std::function<void(OptimizerSpec&)>& change) {
  OptimizerSpec spec = cluster::defaultOptimizer(kind);
  change(spec);
  try {
    validateOptimizer(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    return error.message();
  }
  return "";
}

TEST(ValidateOptimizer, EveryKindsDefaultsPass) {
  for (int kind = 1; kind <= 10; ++kind)
    EXPECT_EQ(refusal(static_cast<Kind>(kind), [](auto&) {}), "") << "kind " << kind;
}

TEST(ValidateOptimizer, RefusesKindsThatNoVersionHas) {
  EXPECT_NE(refusal(Kind::kAdam, [](auto& o) { o.kind = static_cast<Kind>(11); }), "");
  EXPECT_NE(refusal(Kind::kAdam, [](auto& o) { o.schedule.kind = LearningRateSchedule::Kind{9}; }),
            "");
}

TEST(ValidateOptimizer, NamesTheSettingItsValueAndItsBounds) {
  EXPECT_NE(refusal(Kind::kRmsProp, [](auto& o) { o.decay = 1; })
                .find("decay is 1, but must be at least 0 and less"),
            std::string::npos);
  EXPECT_NE(refusal(Kind::kAdam, [](auto& o) { o.beta1 = 1; }), "");
  EXPECT_NE(refusal(Kind::kAdagrad, [](auto& o) { o.initial_accumulator_value = 0; }), "");
  EXPECT_NE(refusal(Kind::kMomentum,
                    [](auto& o) { o.learning_rate = std::numeric_limits<double>::quiet_NaN(); }),
            "");
}

// Bounds that only catch typing mistakes belong to the file's reader.
TEST(ValidateOptimizer, ALargeRateIsNotRefusedHere) {
  EXPECT_EQ(refusal(Kind::kGradientDescent, [](auto& o) { o.learning_rate = 2e6; }), "");
  EXPECT_NE(refusal(Kind::kGradientDescent,
                    [](auto& o) { o.learning_rate = std::numeric_limits<double>::infinity(); }),
            "");
}

TEST(ValidateOptimizer, FtrlTakesNoSchedule) {
  EXPECT_NE(refusal(Kind::kFtrl, [](auto& o) { o.schedule.warmup_steps = 5; })
                .find("ftrl with a learning-rate schedule"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::optimizer
