#pragma once

// The optimizer of a job as value types: TensorFlow 1's optimizers, hyper-parameters and defaults.
// common/optimizer/optimizer.h has their formulae. A new setting is a field here, a line in the
// tables of schema_optimizers.cc and its place in the formula. The YAML, --help-config, the checks,
// the wire and the text of differences follow from the table (optimizer_settings.h).

#include <cstdint>
#include <string_view>

namespace dtf::cluster {

// How the learning rate changes from OptimizerSpec::learning_rate on. All steps are updates.
struct LearningRateSchedule {
  enum class Kind : uint8_t { kConstant = 1, kExponential = 2, kPolynomial = 3, kCosine = 4 };
  Kind kind = Kind::kConstant;
  // Steps from learning_rate / warmup_steps up to learning_rate, linear; the schedule counts from
  // their end.
  uint64_t warmup_steps = 0;
  uint64_t decay_steps = 1;           // exponential, polynomial, cosine
  double decay_rate = 0.96;           // exponential
  bool staircase = false;             // exponential: in whole decay_steps
  double end_learning_rate = 0.0001;  // polynomial
  double power = 1;                   // polynomial
  bool cycle = false;                 // polynomial: starts again, longer, instead of staying
  double alpha = 0;                   // cosine: the last rate, as a fraction of the first
  bool operator==(const LearningRateSchedule&) const = default;
};

struct OptimizerSpec {
  enum class Kind : uint8_t {
    kGradientDescent = 1,
    kAdagrad = 2,
    kAdam = 3,
    kMomentum = 4,
    kAdadelta = 5,
    kAdamW = 6,
    kRmsProp = 7,
    kFtrl = 8,
    kLars = 9,
    kLamb = 10,
  };
  Kind kind = Kind::kGradientDescent;
  double learning_rate = 0.01;  // with a schedule: the initial one
  LearningRateSchedule schedule;

  double momentum = 0.9;                            // momentum, rmsprop, lars
  bool use_nesterov = false;                        // momentum, lars
  double initial_accumulator_value = 0.1;           // adagrad, ftrl
  double rho = 0.95;                                // adadelta
  double beta1 = 0.9, beta2 = 0.999;                // adam, adamw, lamb
  double epsilon = 1e-8;                            // adadelta, adam, adamw, rmsprop, lars, lamb
  double decay = 0.9;                               // rmsprop
  bool centered = false;                            // rmsprop
  double learning_rate_power = -0.5;                // ftrl
  double l1_regularization_strength = 0;            // ftrl
  double l2_regularization_strength = 0;            // ftrl
  double l2_shrinkage_regularization_strength = 0;  // ftrl
  double eeta = 0.001;                              // lars: the trust coefficient
  // L2: added to the gradient (times the parameter). adamw, lamb: decoupled. ftrl: none.
  double weight_decay = 0;

  double clip_by_value = 0;         // clips the mean gradient to [-this, this]; 0: off
  double clip_by_global_norm = 0;   // clips each worker's gradient before the push; 0: off
  double moving_average_decay = 0;  // of the average of the parameters; 0: no average

  bool operator==(const OptimizerSpec&) const = default;
};

// Returns TensorFlow's defaults for `kind`: some differ between kinds (epsilon).
OptimizerSpec defaultOptimizer(OptimizerSpec::Kind kind);

// Returns the name in the YAML: "gradient_descent". `kind` must be one of the above.
std::string_view optimizerName(OptimizerSpec::Kind kind);
bool isOptimizerKind(int kind);

// Whether no variable may be split over several ps: lars and lamb scale each update by norms of the
// whole variable.
bool needsWholeVariables(OptimizerSpec::Kind kind);

std::string_view scheduleName(LearningRateSchedule::Kind kind);

}  // namespace dtf::cluster
