// The tables of schema.h for train.optimizer.

#include "common/cluster/schema.h"
#include "common/cluster/schema_keys.h"

namespace dtf::cluster {

namespace {

constexpr Key kOptimizersKeys[] = {
    map("gradient_descent", "w -= learning_rate * g"),
    map("momentum", "gradient descent along a running sum of gradients"),
    map("adagrad", "learning rate per element, from the sum of squares"),
    map("adadelta", "learning rate per element, from decaying sums of squares"),
    map("adam", "first and second moments, with bias correction"),
    map("adamw", "adam with a weight decay beside the gradient"),
    map("rmsprop", "learning rate per element, from a decaying mean of squares"),
    map("ftrl", "follow the regularized leader: weights that are exactly 0"),
    map("lars", "momentum, scaled per variable by norms; for large batches"),
    map("lamb", "adam, scaled per variable by norms; for large batches"),
    later("adagrad_da"),
    later("proximal_adagrad"),
    later("proximal_gradient_descent"),
};

constexpr Key kOptimizerCommonKeys[] = {
    number("clip_by_value", kPositive, "the mean gradient, to [-X, X], on the ps; default: not"),
    number("clip_by_global_norm", kPositive,
           "each worker's whole gradient, before it is pushed; default: not"),
    map("moving_average", "keep an average of the parameters; evaluations use it; default: none"),
};

constexpr Key kMovingAverageKeys[] = {
    required(number("decay", {0, 1, true, true},
                    "average -= (1 - decay)(average - w) after each update")),
};

constexpr Key rate(std::string_view help) {
  return numberOrMap("learning_rate", kPositive, help);
}
constexpr Key kL2 =
    number("weight_decay", kNotNegative, "L2: this times w is added to the gradient; default 0");

constexpr Key kGradientDescentKeys[] = {
    rate("default 0.01; a map is a schedule"),
    kL2,
};

constexpr Key kMomentumKeys[] = {
    rate("default 0.01; a map is a schedule"),
    number("momentum", kDecay, "default 0.9"),
    boolean("use_nesterov", "default false"),
    kL2,
};

constexpr Key kAdagradKeys[] = {
    rate("default 0.01; a map is a schedule"),
    number("initial_accumulator_value", kPositive, "default 0.1"),
    kL2,
};

constexpr Key kAdadeltaKeys[] = {
    rate("default 0.001; a map is a schedule"),
    number("rho", kDecay, "decay of the sums; default 0.95"),
    number("epsilon", kPositive, "inside the roots; default 1e-8"),
    kL2,
};

constexpr Key kAdamKeys[] = {
    rate("default 0.001; a map is a schedule"),
    number("beta1", kDecay, "default 0.9"),
    number("beta2", kDecay, "default 0.999"),
    number("epsilon", kPositive, "default 1e-8"),
    kL2,
};

constexpr Key kAdamWKeys[] = {
    required(number("weight_decay", kNotNegative,
                    "this times w is subtracted from w, whatever the learning_rate")),
    rate("default 0.001; a map is a schedule"),
    number("beta1", kDecay, "default 0.9"),
    number("beta2", kDecay, "default 0.999"),
    number("epsilon", kPositive, "default 1e-8"),
};

constexpr Key kRmsPropKeys[] = {
    rate("default 0.001; a map is a schedule"),
    number("decay", kDecay, "of the mean of squares, which starts at 1; default 0.9"),
    number("momentum", kDecay, "default 0"),
    number("epsilon", kPositive, "inside the root; default 1e-10"),
    boolean("centered", "divide by the deviation, not the mean of squares; default false"),
    kL2,
};

constexpr Key kFtrlKeys[] = {
    number("learning_rate", kPositive, "default 0.001; no schedule: the formula needs one rate"),
    number("learning_rate_power", {-10, 0, false, false}, "default -0.5; others are slow"),
    number("initial_accumulator_value", kNotNegative, "default 0.1"),
    number("l1_regularization_strength", kNotNegative, "default 0"),
    number("l2_regularization_strength", kNotNegative, "default 0"),
    number("l2_shrinkage_regularization_strength", kNotNegative, "default 0"),
};

constexpr Key kLarsKeys[] = {
    rate("default 0.01; a map is a schedule"),
    number("momentum", kDecay, "default 0.9"),
    number("weight_decay", kNotNegative, "this times w is added to the gradient; default 0.0001"),
    number("eeta", kPositive, "the trust coefficient; default 0.001"),
    number("epsilon", kNotNegative, "added to the norms; default 0"),
    boolean("use_nesterov", "default false"),
};

constexpr Key kLambKeys[] = {
    rate("default 0.001; a map is a schedule"),
    number("beta1", kDecay, "default 0.9"),
    number("beta2", kDecay, "default 0.999"),
    number("epsilon", kPositive, "default 1e-6"),
    number("weight_decay", kNotNegative, "this times w is added to the update; default 0"),
};

constexpr Key kLearningRateKeys[] = {
    map("constant", "initial throughout; for its warmup_steps"),
    map("exponential", "initial * decay_rate^(step/decay_steps)"),
    map("polynomial", "(initial - end)(1 - step/decay_steps)^power + end"),
    map("cosine", "half a wave from initial to alpha * initial"),
};

constexpr Key kInitial = required(number("initial", kPositive, "the first learning rate"));
constexpr Key kWarmup =
    whole("warmup_steps", 0, kCountMax, "linear, up to initial; step counts from there; default 0");
constexpr Key kDecaySteps = required(whole("decay_steps", 1, kCountMax, "updates"));

constexpr Key kConstantRateKeys[] = {kInitial, kWarmup};

constexpr Key kExponentialRateKeys[] = {
    kInitial,
    kDecaySteps,
    required(number("decay_rate", kPositive, "factor of every decay_steps")),
    boolean("staircase", "in whole decay_steps; default false"),
    kWarmup,
};

constexpr Key kPolynomialRateKeys[] = {
    kInitial,
    kDecaySteps,
    number("end", kNotNegative, "the last learning rate; default 0.0001"),
    number("power", kPositive, "default 1"),
    boolean("cycle", "start again, longer, instead of staying at end; default false"),
    kWarmup,
};

constexpr Key kCosineRateKeys[] = {
    kInitial,
    kDecaySteps,
    number("alpha", {0, 1, false, false}, "the last learning rate / initial; default 0"),
    kWarmup,
};

}  // namespace

namespace schema {
constinit const Table kOptimizers{"train.optimizer", kOptimizersKeys};
constinit const Table kOptimizerCommon{"train.optimizer.NAME", kOptimizerCommonKeys};
constinit const Table kMovingAverage{"train.optimizer.NAME.moving_average", kMovingAverageKeys};
constinit const Table kGradientDescent{"train.optimizer.gradient_descent", kGradientDescentKeys,
                                       &kOptimizerCommon};
constinit const Table kMomentum{"train.optimizer.momentum", kMomentumKeys, &kOptimizerCommon};
constinit const Table kAdagrad{"train.optimizer.adagrad", kAdagradKeys, &kOptimizerCommon};
constinit const Table kAdadelta{"train.optimizer.adadelta", kAdadeltaKeys, &kOptimizerCommon};
constinit const Table kAdam{"train.optimizer.adam", kAdamKeys, &kOptimizerCommon};
constinit const Table kAdamW{"train.optimizer.adamw", kAdamWKeys, &kOptimizerCommon};
constinit const Table kRmsProp{"train.optimizer.rmsprop", kRmsPropKeys, &kOptimizerCommon};
constinit const Table kFtrl{"train.optimizer.ftrl", kFtrlKeys, &kOptimizerCommon};
constinit const Table kLars{"train.optimizer.lars", kLarsKeys, &kOptimizerCommon};
constinit const Table kLamb{"train.optimizer.lamb", kLambKeys, &kOptimizerCommon};
constinit const Table kLearningRate{"train.optimizer.NAME.learning_rate", kLearningRateKeys};
constinit const Table kConstantRate{"train.optimizer.NAME.learning_rate.constant",
                                    kConstantRateKeys};
constinit const Table kExponentialRate{"train.optimizer.NAME.learning_rate.exponential",
                                       kExponentialRateKeys};
constinit const Table kPolynomialRate{"train.optimizer.NAME.learning_rate.polynomial",
                                      kPolynomialRateKeys};
constinit const Table kCosineRate{"train.optimizer.NAME.learning_rate.cosine", kCosineRateKeys};

const Table& optimizer(OptimizerSpec::Kind kind) {
  static constexpr const Table* kTables[] = {
      &kGradientDescent, &kAdagrad, &kAdam, &kMomentum, &kAdadelta,
      &kAdamW,           &kRmsProp, &kFtrl, &kLars,     &kLamb};
  return *kTables[static_cast<size_t>(kind) - 1];
}

const Table& learningRate(LearningRateSchedule::Kind kind) {
  static constexpr const Table* kTables[] = {&kConstantRate, &kExponentialRate, &kPolynomialRate,
                                             &kCosineRate};
  return *kTables[static_cast<size_t>(kind) - 1];
}
}  // namespace schema

}  // namespace dtf::cluster
