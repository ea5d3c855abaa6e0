// `optimizer:` of a TRAIN.yaml.

#include <gtest/gtest.h>

#include "tests/unit/cluster/train_of.h"

namespace dtf::cluster {
namespace {

TEST(ReadOptimizer, ReadsOptimizersWithTheirDefaults) {
  using Kind = OptimizerSpec::Kind;
  EXPECT_EQ(trainOf("").optimizer, OptimizerSpec());
  const OptimizerSpec adagrad =
      trainOf("optimizer: {adagrad: {initial_accumulator_value: 0.2}}\n").optimizer;
  EXPECT_EQ(adagrad.kind, Kind::kAdagrad);
  EXPECT_EQ(adagrad.learning_rate, 0.01);
  EXPECT_EQ(adagrad.initial_accumulator_value, 0.2);
  EXPECT_EQ(trainOf("optimizer: adagrad\n").optimizer.kind, Kind::kAdagrad);
  const OptimizerSpec adam =
      trainOf("optimizer: {adam: {beta1: 0.5, beta2: 0, epsilon: 1e-4}}\n").optimizer;
  EXPECT_EQ(adam.kind, Kind::kAdam);
  EXPECT_EQ(adam.learning_rate, 0.001);
  EXPECT_EQ(adam.beta1, 0.5);
  EXPECT_EQ(adam.beta2, 0);
  EXPECT_EQ(adam.epsilon, 1e-4);
  EXPECT_EQ(
      trainOf("optimizer: {gradient_descent: {learning_rate: +.5}}\n").optimizer.learning_rate,
      0.5);
}

TEST(ReadOptimizer, ReadsEverySettingOfTheOtherOptimizers) {
  using Kind = OptimizerSpec::Kind;
  const auto read = [](const std::string& text) {
    return trainOf("optimizer: " + text + "\n").optimizer;
  };
  for (const char* name : {"momentum", "adadelta", "rmsprop", "ftrl", "lars", "lamb"}) {
    const OptimizerSpec spec = read(name);
    EXPECT_EQ(optimizerName(spec.kind), name);
    EXPECT_EQ(spec, defaultOptimizer(spec.kind)) << name;
  }
  EXPECT_EQ(read("rmsprop").epsilon, 1e-10);
  EXPECT_EQ(read("lamb").epsilon, 1e-6);

  OptimizerSpec momentum = defaultOptimizer(Kind::kMomentum);
  momentum.momentum = 0.5;
  momentum.use_nesterov = true;
  momentum.weight_decay = 0.1;
  momentum.clip_by_value = 2;
  momentum.clip_by_global_norm = 3;
  momentum.moving_average_decay = 0.999;
  EXPECT_EQ(read("{momentum: {momentum: 0.5, use_nesterov: true, weight_decay: 0.1, "
                 "clip_by_value: 2, clip_by_global_norm: 3, moving_average: {decay: 0.999}}}"),
            momentum);
  OptimizerSpec rmsprop = defaultOptimizer(Kind::kRmsProp);
  rmsprop.decay = 0.8;
  rmsprop.momentum = 0.7;
  rmsprop.epsilon = 0.1;
  rmsprop.centered = true;
  EXPECT_EQ(read("{rmsprop: {decay: 0.8, momentum: 0.7, epsilon: 0.1, centered: true}}"), rmsprop);
  OptimizerSpec ftrl = defaultOptimizer(Kind::kFtrl);
  ftrl.learning_rate = 0.5;
  ftrl.learning_rate_power = -1;
  ftrl.initial_accumulator_value = 0;
  ftrl.l1_regularization_strength = 0.1;
  ftrl.l2_regularization_strength = 0.2;
  ftrl.l2_shrinkage_regularization_strength = 0.3;
  EXPECT_EQ(read("{ftrl: {learning_rate: 0.5, learning_rate_power: -1, initial_accumulator_value: "
                 "0, l1_regularization_strength: 0.1, l2_regularization_strength: 0.2, "
                 "l2_shrinkage_regularization_strength: 0.3}}"),
            ftrl);
  OptimizerSpec lars = defaultOptimizer(Kind::kLars);
  lars.eeta = 0.02;
  lars.weight_decay = 0;
  EXPECT_EQ(read("{lars: {eeta: 0.02, weight_decay: 0}}"), lars);
  EXPECT_EQ(read("{adamw: {weight_decay: 0.004}}").weight_decay, 0.004);
  EXPECT_EQ(read("{adadelta: {rho: 0.9}}").rho, 0.9);
}

TEST(ReadOptimizer, ReadsLearningRateSchedules) {
  using Kind = LearningRateSchedule::Kind;
  const auto read = [](const std::string& text) {
    return trainOf("optimizer: {momentum: {learning_rate: {" + text + "}}}\n").optimizer;
  };
  OptimizerSpec spec = read("constant: {initial: 0.3, warmup_steps: 5}");
  EXPECT_EQ(spec.learning_rate, 0.3);
  EXPECT_EQ(spec.schedule, (LearningRateSchedule{.kind = Kind::kConstant, .warmup_steps = 5}));
  spec = read("exponential: {initial: 0.2, decay_steps: 10, decay_rate: 0.5, staircase: true}");
  EXPECT_EQ(spec.learning_rate, 0.2);
  EXPECT_EQ(
      spec.schedule,
      (LearningRateSchedule{
          .kind = Kind::kExponential, .decay_steps = 10, .decay_rate = 0.5, .staircase = true}));
  spec = read("polynomial: {initial: 0.2, decay_steps: 10, end: 0, power: 2, cycle: true}");
  EXPECT_EQ(spec.schedule, (LearningRateSchedule{.kind = Kind::kPolynomial,
                                                 .decay_steps = 10,
                                                 .end_learning_rate = 0,
                                                 .power = 2,
                                                 .cycle = true}));
  spec = read("cosine: {initial: 0.2, decay_steps: 10, alpha: 0.1}");
  EXPECT_EQ(spec.schedule,
            (LearningRateSchedule{.kind = Kind::kCosine, .decay_steps = 10, .alpha = 0.1}));
}

}  // namespace
}  // namespace dtf::cluster
