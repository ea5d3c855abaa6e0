#include "common/optimizer/optimizer_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/graph/error_text.h"

namespace dtf::optimizer {
namespace {

using cluster::LearningRateSchedule;
using cluster::OptimizerSpec;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  return errorText([&] { decodeOptimizer(text); });
}

TEST(OptimizerText, SettingsThatAreLeftOutHaveTheDefaultsOfAFile) {
  for (int kind = 1; cluster::isOptimizerKind(kind); ++kind) {
    const auto of = static_cast<OptimizerSpec::Kind>(kind);
    OptimizerSpec wanted = cluster::defaultOptimizer(of);
    std::string text(cluster::optimizerName(of));
    if (of == OptimizerSpec::Kind::kAdamW) {
      wanted.weight_decay = 0.125;
      text += " weight_decay=0.125";
    }
    EXPECT_EQ(decodeOptimizer(text), wanted) << text;
    EXPECT_EQ(decodeOptimizer(encodeOptimizer(wanted)), wanted) << encodeOptimizer(wanted);
  }
}

TEST(OptimizerText, EverySettingComesBackWithItsBits) {
  OptimizerSpec spec = cluster::defaultOptimizer(OptimizerSpec::Kind::kMomentum);
  spec.learning_rate = 1.0 / 3;
  spec.use_nesterov = true;
  spec.momentum = 0.1 + 0.2;
  spec.clip_by_global_norm = 2.5;
  spec.moving_average_decay = 0.999;
  spec.schedule.kind = LearningRateSchedule::Kind::kPolynomial;
  spec.schedule.decay_steps = 123'456'789;
  spec.schedule.cycle = true;
  spec.schedule.warmup_steps = 7;
  EXPECT_EQ(decodeOptimizer(encodeOptimizer(spec)), spec) << encodeOptimizer(spec);
}

TEST(OptimizerText, MistakesAreNamedWithTheNearestWord) {
  EXPECT_THAT(refusal("adem"), AllOf(HasSubstr("'adem'"), HasSubstr("did you mean 'adam'?")));
  EXPECT_THAT(refusal("adam beta3=0.5"), AllOf(HasSubstr("'beta3'"), HasSubstr("did you mean")));
  EXPECT_THAT(refusal("adam momentum=0.5"), HasSubstr("adam has no setting 'momentum'"));
  EXPECT_THAT(refusal("adam beta1"), HasSubstr("write NAME=VALUE"));
  EXPECT_THAT(refusal("adam beta1=1"), AllOf(HasSubstr("beta1 is '1'"), HasSubstr("must be")));
  EXPECT_THAT(refusal("adam learning_rate=fast"), HasSubstr("'fast'"));
  EXPECT_THAT(refusal("momentum use_nesterov=1"), HasSubstr("use_nesterov is '1'"));
  EXPECT_THAT(refusal("adam schedule=cosin"), HasSubstr("did you mean 'cosine'?"));
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal(std::string(kOptimizerTextMax + 1, 'a')), HasSubstr("4097 bytes"));
}

TEST(OptimizerText, WhatHasNoDefaultIsAskedFor) {
  EXPECT_THAT(refusal("adamw"), HasSubstr("adamw needs the setting weight_decay"));
  EXPECT_THAT(refusal("adam schedule=exponential decay_rate=0.5"),
              HasSubstr("needs the setting decay_steps"));
  EXPECT_THAT(refusal("ftrl schedule=cosine decay_steps=5"), HasSubstr("one rate throughout"));
}

}  // namespace
}  // namespace dtf::optimizer
