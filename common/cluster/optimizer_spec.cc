#include "common/cluster/optimizer_spec.h"

#include <array>

#include "common/base/check.h"
#include "common/cluster/optimizer_settings.h"

namespace dtf::cluster {

using yaml::Key;

namespace {

using Kind = OptimizerSpec::Kind;

constexpr std::array<std::string_view, 10> kNames = {
    "gradient_descent", "adagrad", "adam", "momentum", "adadelta", "adamw",
    "rmsprop",          "ftrl",    "lars", "lamb"};
constexpr std::array<std::string_view, 4> kScheduleNames = {"constant", "exponential", "polynomial",
                                                            "cosine"};

}  // namespace

OptimizerSpec defaultOptimizer(Kind kind) {
  DTF_CHECK(isOptimizerKind(static_cast<int>(kind)));
  OptimizerSpec spec;
  spec.kind = kind;
  for (const Key& key : schema::optimizer(kind).keys)
    if (key.default_value) setSetting(spec, key, *key.default_value);
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
