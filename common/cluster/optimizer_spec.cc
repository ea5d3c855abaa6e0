#include "common/cluster/optimizer_spec.h"

#include <array>

#include "common/base/check.h"

namespace dtf::cluster {

namespace {

using Kind = OptimizerSpec::Kind;

constexpr std::array<std::string_view, 10> kNames = {
    "gradient_descent", "adagrad", "adam", "momentum", "adadelta", "adamw",
    "rmsprop",          "ftrl",    "lars", "lamb"};
constexpr std::array<std::string_view, 4> kScheduleNames = {"constant", "exponential", "polynomial",
                                                            "cosine"};

}  // namespace

OptimizerSpec defaultOptimizer(Kind kind) {
  OptimizerSpec spec;
  spec.kind = kind;
  switch (kind) {
    case Kind::kGradientDescent:
    case Kind::kAdagrad:
    case Kind::kMomentum:
      break;
    case Kind::kAdam:
    case Kind::kAdamW:
    case Kind::kAdadelta:
    case Kind::kFtrl:
      spec.learning_rate = 0.001;
      break;
    case Kind::kRmsProp:
      spec.learning_rate = 0.001;
      spec.momentum = 0;
      spec.epsilon = 1e-10;
      break;
    case Kind::kLars:
      spec.weight_decay = 0.0001;
      spec.epsilon = 0;
      break;
    case Kind::kLamb:
      spec.learning_rate = 0.001;
      spec.epsilon = 1e-6;
      break;
  }
  return spec;
}

std::string_view optimizerName(Kind kind) {
  DTF_CHECK(isOptimizerKind(static_cast<int>(kind)));
  return kNames[static_cast<size_t>(kind) - 1];
}

bool isOptimizerKind(int kind) {
  return kind >= 1 && kind <= static_cast<int>(kNames.size());
}

bool needsWholeVariables(Kind kind) {
  return kind == Kind::kLars || kind == Kind::kLamb;
}

std::string_view scheduleName(LearningRateSchedule::Kind kind) {
  const size_t index = static_cast<size_t>(kind) - 1;
  DTF_CHECK(index < kScheduleNames.size());
  return kScheduleNames[index];
}

}  // namespace dtf::cluster
