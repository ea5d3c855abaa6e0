// The tables of schema.h for train.optimizer.

#include <iterator>

#include "common/base/check.h"
#include "common/cluster/optimizer_settings.h"
#include "common/cluster/schema.h"
#include "common/yaml/keys.h"

namespace dtf::cluster {

using yaml::boolean;
using yaml::kCountMax;
using yaml::kDecay;
using yaml::Key;
using yaml::kNotNegative;
using yaml::kPositive;
using yaml::later;
using yaml::map;
using yaml::number;
using yaml::numberOrMap;
using yaml::NumberRange;
using yaml::required;
using yaml::Table;
using yaml::whole;

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

// ---- settings: name, field, bounds, help; the default is `otherwise`, if given, or the field's

using Rate = LearningRateSchedule;

template <auto kMember>
constexpr Key real(std::string_view name, NumberRange range, std::string_view help,
                   std::optional<double> otherwise = {}) {
  Key key = number(name, range, help);
  key.field = &kSettingField<kMember>;
  key.default_value = otherwise;
  return key;
}
template <auto kMember>
constexpr Key truth(std::string_view name, std::string_view help) {
  Key key = boolean(name, help);
  key.field = &kSettingField<kMember>;
  return key;
}
template <auto kMember>
constexpr Key count(std::string_view name, int64_t min, std::string_view help) {
  Key key = whole(name, min, kCountMax, help);
  key.field = &kSettingField<kMember>;
  return key;
}

constexpr Key kOptimizerCommonKeys[] = {
    real<&OptimizerSpec::clip_by_value>("clip_by_value", kPositive,
                                        "the mean gradient, to [-X, X], on the ps"),
    real<&OptimizerSpec::clip_by_global_norm>("clip_by_global_norm", kPositive,
                                              "each worker's whole gradient, before it is pushed"),
    map("moving_average", "keep an average of the parameters; evaluations use it; default none"),
};

constexpr Key kMovingAverageKeys[] = {
    required(real<&OptimizerSpec::moving_average_decay>(
        "decay", {0, 1, true, true}, "average -= (1 - decay)(average - w) after each update")),
};

constexpr Key rate(std::optional<double> otherwise = {}) {
  Key key = numberOrMap("learning_rate", kPositive, "a map is a schedule");
  key.field = &kSettingField<&OptimizerSpec::learning_rate>;
  key.default_value = otherwise;
  return key;
}
constexpr Key weightDecay(std::string_view help, std::optional<double> otherwise = {}) {
  return real<&OptimizerSpec::weight_decay>("weight_decay", kNotNegative, help, otherwise);
}
constexpr Key momentum(std::string_view help, std::optional<double> otherwise = {}) {
  return real<&OptimizerSpec::momentum>("momentum", kDecay, help, otherwise);
}
constexpr Key epsilon(NumberRange range, std::string_view help,
                      std::optional<double> otherwise = {}) {
  return real<&OptimizerSpec::epsilon>("epsilon", range, help, otherwise);
}
constexpr Key accumulator(NumberRange range) {
  return real<&OptimizerSpec::initial_accumulator_value>("initial_accumulator_value", range,
                                                         "initial value of the sum of squares");
}
constexpr Key kL2 = weightDecay("L2: this times w is added to the gradient");
constexpr Key kBeta1 =
    real<&OptimizerSpec::beta1>("beta1", kDecay, "decay of the mean of gradients");
constexpr Key kBeta2 = real<&OptimizerSpec::beta2>("beta2", kDecay, "decay of the mean of squares");
constexpr Key kNesterov =
    truth<&OptimizerSpec::use_nesterov>("use_nesterov", "take the step after the next sum");
constexpr std::string_view kBesideRoot = "added to the root";

constexpr Key kGradientDescentKeys[] = {rate(), kL2};

constexpr Key kMomentumKeys[] = {rate(), momentum("decay of the sum"), kNesterov, kL2};

constexpr Key kAdagradKeys[] = {rate(), accumulator(kPositive), kL2};

constexpr Key kAdadeltaKeys[] = {
    rate(0.001),
    real<&OptimizerSpec::rho>("rho", kDecay, "decay of the sums"),
    epsilon(kPositive, "inside the roots"),
    kL2,
};

constexpr Key kAdamKeys[] = {rate(0.001), kBeta1, kBeta2, epsilon(kPositive, kBesideRoot), kL2};

constexpr Key kAdamWKeys[] = {
    required(weightDecay("this times w and the learning_rate is subtracted from w")),
    rate(0.001),
    kBeta1,
    kBeta2,
    epsilon(kPositive, kBesideRoot),
};

constexpr Key kRmsPropKeys[] = {
    rate(0.001),
    real<&OptimizerSpec::decay>("decay", kDecay, "decay of the mean of squares, which starts at 1"),
    momentum("decay of the sum", 0),
    epsilon(kPositive, "inside the root", 1e-10),
    truth<&OptimizerSpec::centered>("centered", "divide by the deviation, not the mean of squares"),
    kL2,
};

constexpr Key kFtrlKeys[] = {
    real<&OptimizerSpec::learning_rate>("learning_rate", kPositive,
                                        "no schedule: the formula needs one rate", 0.001),
    real<&OptimizerSpec::learning_rate_power>("learning_rate_power", {-10, 0, false, false},
                                              "others than -0.5 are slow"),
    accumulator(kNotNegative),
    real<&OptimizerSpec::l1_regularization_strength>("l1_regularization_strength", kNotNegative,
                                                     "makes weights exactly 0"),
    real<&OptimizerSpec::l2_regularization_strength>("l2_regularization_strength", kNotNegative,
                                                     "of the weights"),
    real<&OptimizerSpec::l2_shrinkage_regularization_strength>(
        "l2_shrinkage_regularization_strength", kNotNegative,
        "in the gradient: twice this times w"),
};

constexpr Key kLarsKeys[] = {
    rate(),
    momentum("decay of the sum"),
    weightDecay("this times w is added to the gradient", 0.0001),
    real<&OptimizerSpec::eeta>("eeta", kPositive, "the trust coefficient"),
    epsilon(kNotNegative, "added to the norms", 0),
    kNesterov,
};

constexpr Key kLambKeys[] = {
    rate(0.001),
    kBeta1,
    kBeta2,
    epsilon(kPositive, kBesideRoot, 1e-6),
    weightDecay("this times w is added to the update"),
};

// ---- learning-rate schedules

constexpr Key kLearningRateKeys[] = {
    map("constant", "initial throughout; for its warmup_steps"),
    map("exponential", "initial * decay_rate^(step/decay_steps)"),
    map("polynomial", "(initial - end)(1 - step/decay_steps)^power + end"),
    map("cosine", "half a wave from initial to alpha * initial"),
};

constexpr Key kInitial =
    required(real<&OptimizerSpec::learning_rate>("initial", kPositive, "the first learning rate"));
constexpr Key kWarmup =
    count<&Rate::warmup_steps>("warmup_steps", 0, "linear, up to initial; step counts from there");
constexpr Key kDecaySteps =
    required(count<&Rate::decay_steps>("decay_steps", 1, "updates of one decay"));

constexpr Key kConstantRateKeys[] = {kInitial, kWarmup};

constexpr Key kExponentialRateKeys[] = {
    kInitial,
    kDecaySteps,
    required(real<&Rate::decay_rate>("decay_rate", kPositive, "factor of every decay_steps")),
    truth<&Rate::staircase>("staircase", "in whole decay_steps"),
    kWarmup,
};

constexpr Key kPolynomialRateKeys[] = {
    kInitial,
    kDecaySteps,
    real<&Rate::end_learning_rate>("end", kNotNegative, "the last learning rate"),
    real<&Rate::power>("power", kPositive, "power of the remaining share of decay_steps"),
    truth<&Rate::cycle>("cycle", "start again, longer, instead of staying at end"),
    kWarmup,
};

constexpr Key kCosineRateKeys[] = {
    kInitial,
    kDecaySteps,
    real<&Rate::alpha>("alpha", {0, 1, false, false}, "the last learning rate / initial"),
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
  DTF_CHECK(isOptimizerKind(static_cast<int>(kind)));
  static constexpr const Table* kTables[] = {
      &kGradientDescent, &kAdagrad, &kAdam, &kMomentum, &kAdadelta,
      &kAdamW,           &kRmsProp, &kFtrl, &kLars,     &kLamb};
  return *kTables[static_cast<size_t>(kind) - 1];
}

const Table& learningRate(LearningRateSchedule::Kind kind) {
  static constexpr const Table* kTables[] = {&kConstantRate, &kExponentialRate, &kPolynomialRate,
                                             &kCosineRate};
  DTF_CHECK(static_cast<size_t>(kind) - 1 < std::size(kTables));
  return *kTables[static_cast<size_t>(kind) - 1];
}
}  // namespace schema

}  // namespace dtf::cluster
