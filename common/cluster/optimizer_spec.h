#pragma once

// The optimizer of a job as value types: TensorFlow 1's optimizers, hyper-parameters and defaults.
// What each does with them is in common/ps/optimizer.h. A new setting is a field here, a line in
// the tables of schema_optimizers.cc and its place in the formula: the YAML, --help-config, the
// checks, the wire and the text of differences follow from the table (optimizer_settings.h).

#include <cstdint>
#include <string_view>

namespace dtf::cluster {

// How the learning rate goes on from OptimizerSpec::learning_rate. Counted in updates.
struct LearningRateSchedule {
  enum class Kind : uint8_t { kConstant = 1, kExponential = 2, kPolynomial = 3, kCosine = 4 };
  Kind kind = Kind::kConstant;
  // From learning_rate / warmup_steps up to learning_rate, in even steps; the schedule's own count
  // starts after them.
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
  double learning_rate = 0.01;  // the first, where there is a schedule
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

  double clip_by_value = 0;         // of the mean gradient, to [-this, this]; 0: not
  double clip_by_global_norm = 0;   // of each worker's gradient, before it is pushed; 0: not
  double moving_average_decay = 0;  // of the parameters after each update; 0: none is kept

  bool operator==(const OptimizerSpec&) const = default;
};

// The kind with TensorFlow's defaults, which differ between kinds for the same name (epsilon).
OptimizerSpec defaultOptimizer(OptimizerSpec::Kind kind);

// As the YAML calls it: "gradient_descent". `kind` must be one of the above.
std::string_view optimizerName(OptimizerSpec::Kind kind);
bool isOptimizerKind(int kind);

// lars and lamb scale each variable's update by norms over the whole variable, so that no variable
// may be split over several ps.
bool needsWholeVariables(OptimizerSpec::Kind kind);

std::string_view scheduleName(LearningRateSchedule::Kind kind);

}  // namespace dtf::cluster
