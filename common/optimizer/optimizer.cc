#include "common/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/base/check.h"
#include "common/optimizer/gradient_math.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer_kernels.h"

namespace dtf::optimizer {

using Kind = cluster::OptimizerSpec::Kind;

namespace {

// The optimizer's name in TensorFlow 1's names of slots, and its number of slots.
struct SlotFamily {
  const char* name = "";
  uint32_t count = 0;
};

SlotFamily slotsOf(const cluster::OptimizerSpec& spec) {
  switch (spec.kind) {
    case Kind::kGradientDescent:
      return {};
    case Kind::kMomentum:
      return {"Momentum", 1};
    case Kind::kAdagrad:
      return {"Adagrad", 1};  // accumulator
    case Kind::kAdadelta:
      return {"Adadelta", 2};  // accum, accum_update
    case Kind::kAdam:
      return {"Adam", 2};  // m, v
    case Kind::kAdamW:
      return {"AdamW", 2};
    case Kind::kRmsProp:
      return {"RMSProp", spec.centered ? 3u : 2u};  // ms, mg where centered, momentum
    case Kind::kFtrl:
      return {"Ftrl", 2};  // accum, linear
    case Kind::kLars:
      return {"LARSOptimizer", 1};  // momentum
    case Kind::kLamb:
      return {"LAMB", 2};  // m, v
  }
  DTF_CHECK_MSG(false, std::to_string(static_cast<int>(spec.kind)));
}

}  // namespace

uint32_t slotCount(const cluster::OptimizerSpec& spec) {
  return slotsOf(spec).count + (spec.moving_average_decay > 0 ? 1 : 0);
}

std::string tensorflowName(const cluster::OptimizerSpec& spec) {
  return spec.kind == Kind::kGradientDescent ? "GradientDescent" : slotsOf(spec).name;
}

bool isMovingAverage(const cluster::OptimizerSpec& spec, uint32_t slot) {
  return spec.moving_average_decay > 0 && slot == slotsOf(spec).count;
}

std::string slotName(const cluster::OptimizerSpec& spec, uint32_t slot) {
  DTF_CHECK(slot < slotCount(spec));
  if (isMovingAverage(spec, slot)) return kMovingAverageSlot;
  const std::string name = slotsOf(spec).name;
  return slot == 0 ? name : name + "_" + std::to_string(slot);
}

float initialSlotValue(const cluster::OptimizerSpec& spec, uint32_t slot) {
  DTF_CHECK(slot < slotCount(spec) && !isMovingAverage(spec, slot));
  if (slot > 0) return 0;
  if (spec.kind == Kind::kAdagrad || spec.kind == Kind::kFtrl) {
    return static_cast<float>(spec.initial_accumulator_value);
  }
  return spec.kind == Kind::kRmsProp ? 1.0f : 0.0f;  // TensorFlow's ms starts at ones
}

namespace {

// Whether the formula has the weight decay in it; for the others it is L2, for ftrl nothing.
bool decaysItself(Kind kind) {
  return kind == Kind::kAdamW || kind == Kind::kLars || kind == Kind::kLamb;
}

// Returns the constants that are the same in every apply.
UpdateConstants fixedConstants(const cluster::OptimizerSpec& spec) {
  const auto f = [](double value) { return static_cast<float>(value); };
  UpdateConstants c;
  c.kind = spec.kind;
  c.momentum = f(spec.momentum);
  c.use_nesterov = spec.use_nesterov;
  c.rho = f(spec.rho);
  c.one_minus_rho = f(1 - (spec.kind == Kind::kRmsProp ? spec.decay : spec.rho));
  c.one_minus_beta1 = f(1 - spec.beta1);
  c.one_minus_beta2 = f(1 - spec.beta2);
  c.epsilon = f(spec.epsilon);
  c.centered = spec.centered;
  c.learning_rate_power = f(spec.learning_rate_power);
  c.l1 = f(spec.l1_regularization_strength);
  c.l2_twice = f(2 * spec.l2_regularization_strength);
  c.l2_shrinkage_twice = f(2 * spec.l2_shrinkage_regularization_strength);
  c.eeta = f(spec.eeta);
  if (decaysItself(spec.kind)) {  // adamw's depends on the rate, see next()
    c.weight_decay = f(spec.weight_decay);
  } else if (spec.kind != Kind::kFtrl) {
    c.l2 = f(spec.weight_decay);
  }
  c.clip_by_value = f(spec.clip_by_value);
  if (spec.moving_average_decay > 0) c.average_slot = slotCount(spec) - 1;
  DTF_CHECK(slotCount(spec) <= kSlotsMax);
  c.one_minus_average_decay = f(1 - spec.moving_average_decay);
  return c;
}

}  // namespace

OptimizerClock::State OptimizerClock::stateAfter(const cluster::OptimizerSpec& spec,
                                                 uint64_t applies) {
  DTF_CHECK(spec.beta1 < 1 && spec.beta2 < 1);  // validateOptimizer() requires it
  State state{applies, 1, 1};
  // A product that doesn't change any more never will.
  for (uint64_t i = 0; i < applies; ++i) {
    const double beta1 = state.beta1_power * spec.beta1, beta2 = state.beta2_power * spec.beta2;
    if (beta1 == state.beta1_power && beta2 == state.beta2_power) break;
    state.beta1_power = beta1;
    state.beta2_power = beta2;
  }
  return state;
}

UpdateConstants OptimizerClock::next() {
  UpdateConstants c = fixedConstants(spec_);
  DTF_CHECK(state_.applies < UINT64_MAX);
  double rate = learningRate(spec_, state_.applies);
  if (spec_.kind == Kind::kAdamW) c.weight_decay = static_cast<float>(rate * spec_.weight_decay);
  ++state_.applies;
  state_.beta1_power *= spec_.beta1;
  state_.beta2_power *= spec_.beta2;
  if (spec_.kind == Kind::kAdam || spec_.kind == Kind::kAdamW)
    rate *= std::sqrt(1 - state_.beta2_power) / (1 - state_.beta1_power);
  c.learning_rate = static_cast<float>(rate);
  c.correction1 = static_cast<float>(1 - state_.beta1_power);
  c.correction2 = static_cast<float>(1 - state_.beta2_power);
  return c;
}

const float* effectiveGradient(const UpdateConstants& c, const UpdateArrays& arrays, uint64_t begin,
                               uint64_t n, float* buffer) {
  DTF_CHECK(!arrays.gradients.empty() && n <= kChunkElements);
  const bool as_it_is = c.clip_by_value == 0 && c.l2 == 0;
  if (arrays.gradients.size() > 1) {
    meanOf(arrays.gradients, arrays.weights, begin, n, buffer);
  } else if (as_it_is) {
    return arrays.gradients[0] + begin;
  } else if (n > 0) {
    std::memcpy(buffer, arrays.gradients[0] + begin, n * sizeof(float));
  }
  if (c.clip_by_value != 0) clipByValue(buffer, c.clip_by_value, n);
  if (c.l2 != 0) addScaled(buffer, arrays.old_parameters + begin, c.l2, n);
  return buffer;
}

void updateRange(const UpdateConstants& c, const UpdateArrays& arrays, uint64_t begin,
                 uint64_t end) {
  DTF_CHECK(begin <= end);
  DTF_CHECK(begin == end || (arrays.old_parameters != nullptr && arrays.new_parameters != nullptr));
  DTF_CHECK(begin == end || arrays.new_parameters != arrays.old_parameters);
  DTF_CHECK(
      c.average_slot == kSlotsMax ||
      (c.average_slot < kSlotsMax && (begin == end || arrays.slots[c.average_slot] != nullptr)));
  alignas(64) float buffer[kChunkElements];
  for (uint64_t at = begin; at < end; at += kChunkElements) {
    const uint64_t n = std::min(kChunkElements, end - at);
    applyKernel(c, kernelArrays(arrays, effectiveGradient(c, arrays, at, n, buffer), at, n));
    if (c.average_slot == kSlotsMax) continue;
    moveAverage(arrays.slots[c.average_slot] + at, arrays.new_parameters + at,
                c.one_minus_average_decay, n);
  }
}

}  // namespace dtf::optimizer
