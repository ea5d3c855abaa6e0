// Against values worked out by hand from tf.train.exponential_decay and its siblings.

#include "common/optimizer/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "common/optimizer/optimizer.h"

namespace dtf::optimizer {
namespace {

using ScheduleKind = cluster::LearningRateSchedule::Kind;

cluster::OptimizerSpec scheduled(ScheduleKind kind, uint64_t decay_steps) {
  cluster::OptimizerSpec spec;
  spec.learning_rate = 0.8;
  spec.schedule.kind = kind;
  spec.schedule.decay_steps = decay_steps;
  return spec;
}

TEST(LearningRate, ConstantStaysAndWarmsUpInEvenSteps) {
  cluster::OptimizerSpec spec;
  spec.learning_rate = 0.8;
  EXPECT_EQ(learningRate(spec, 0), 0.8);
  EXPECT_EQ(learningRate(spec, 1'000'000), 0.8);
  spec.schedule.warmup_steps = 4;
  EXPECT_DOUBLE_EQ(learningRate(spec, 0), 0.2);
  EXPECT_DOUBLE_EQ(learningRate(spec, 2), 0.6);
  EXPECT_DOUBLE_EQ(learningRate(spec, 3), 0.8);
  EXPECT_EQ(learningRate(spec, 4), 0.8);
}

TEST(LearningRate, ExponentialFallsSmoothlyOrInStairs) {
  cluster::OptimizerSpec spec = scheduled(ScheduleKind::kExponential, 10);
  spec.schedule.decay_rate = 0.25;
  EXPECT_EQ(learningRate(spec, 0), 0.8);
  EXPECT_DOUBLE_EQ(learningRate(spec, 5), 0.4);
  EXPECT_DOUBLE_EQ(learningRate(spec, 20), 0.05);
  spec.schedule.staircase = true;
  EXPECT_EQ(learningRate(spec, 9), 0.8);
  EXPECT_EQ(learningRate(spec, 10), 0.2);
  EXPECT_EQ(learningRate(spec, 19), 0.2);
}

TEST(LearningRate, PolynomialEndsOrStartsAgain) {
  cluster::OptimizerSpec spec = scheduled(ScheduleKind::kPolynomial, 10);
  spec.schedule.end_learning_rate = 0.2;
  spec.schedule.power = 2;
  EXPECT_DOUBLE_EQ(learningRate(spec, 0), 0.8);
  EXPECT_DOUBLE_EQ(learningRate(spec, 5), 0.6 * 0.25 + 0.2);
  EXPECT_DOUBLE_EQ(learningRate(spec, 10), 0.2);
  EXPECT_DOUBLE_EQ(learningRate(spec, 99), 0.2);
  spec.schedule.cycle = true;
  EXPECT_DOUBLE_EQ(learningRate(spec, 0), 0.8);
  EXPECT_DOUBLE_EQ(learningRate(spec, 10), 0.2);
  EXPECT_DOUBLE_EQ(learningRate(spec, 15), 0.6 * 0.0625 + 0.2);  // of 20 steps now
  EXPECT_DOUBLE_EQ(learningRate(spec, 20), 0.2);
}

TEST(LearningRate, CosineIsHalfAWave) {
  cluster::OptimizerSpec spec = scheduled(ScheduleKind::kCosine, 100);
  spec.schedule.alpha = 0.5;
  EXPECT_DOUBLE_EQ(learningRate(spec, 0), 0.8);
  EXPECT_NEAR(learningRate(spec, 50), 0.6, 1e-15);
  EXPECT_NEAR(learningRate(spec, 25), 0.4 + 0.4 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(learningRate(spec, 100), 0.4);
  EXPECT_DOUBLE_EQ(learningRate(spec, 500), 0.4);
  spec.schedule.warmup_steps = 10;
  EXPECT_DOUBLE_EQ(learningRate(spec, 4), 0.4);
  EXPECT_DOUBLE_EQ(learningRate(spec, 10), 0.8);
  EXPECT_NEAR(learningRate(spec, 60), 0.6, 1e-15);
}

TEST(LearningRate, TheClockGoesThroughTheScheduleAndOnFromARestoredState) {
  cluster::OptimizerSpec spec = scheduled(ScheduleKind::kExponential, 1);
  spec.schedule.decay_rate = 0.5;
  OptimizerClock clock(spec);
  EXPECT_EQ(clock.next().learning_rate, 0.8f);
  EXPECT_EQ(clock.next().learning_rate, 0.4f);
  OptimizerClock later(spec);
  later.restore(clock.state());
  EXPECT_EQ(later.next().learning_rate, 0.2f);
  EXPECT_EQ(clock.next().learning_rate, 0.2f);
  EXPECT_EQ(clock.state(), later.state());
}

}  // namespace
}  // namespace dtf::optimizer
