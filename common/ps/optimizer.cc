#include "common/ps/optimizer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/check.h"

// Each kernel is compiled for AVX-512, AVX2 and the baseline, and the loader picks one. Not under
// sanitizers, whose runtime isn't up yet when the picking is done, and not with clang 14, which has
// no such `arch=` targets.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DTF_VECTOR_KERNEL \
  __attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DTF_VECTOR_KERNEL __attribute__((noinline))
#endif
#define DTF_RESTRICT __restrict

namespace dtf::ps {

namespace {

using Kind = cluster::OptimizerSpec::Kind;

// Elements that are summed before they are used: 8 KiB, a quarter of a small L1 cache, beside the
// arrays read.
constexpr uint64_t kChunkElements = 2048;

DTF_VECTOR_KERNEL void gradientDescent(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                                       const float* DTF_RESTRICT g, uint64_t n, float lr) {
  for (uint64_t i = 0; i < n; ++i) w_new[i] = w[i] - lr * g[i];
}

DTF_VECTOR_KERNEL void adagrad(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                               float* DTF_RESTRICT accumulator, const float* DTF_RESTRICT g,
                               uint64_t n, float lr) {
  for (uint64_t i = 0; i < n; ++i) {
    const float a = accumulator[i] + g[i] * g[i];
    accumulator[i] = a;
    w_new[i] = w[i] - lr * g[i] / std::sqrt(a);
  }
}

DTF_VECTOR_KERNEL void adam(const float* DTF_RESTRICT w, float* DTF_RESTRICT w_new,
                            float* DTF_RESTRICT m, float* DTF_RESTRICT v,
                            const float* DTF_RESTRICT g, uint64_t n, float lr_t,
                            float one_minus_beta1, float one_minus_beta2, float epsilon) {
  for (uint64_t i = 0; i < n; ++i) {
    const float m_new = m[i] + (g[i] - m[i]) * one_minus_beta1;
    const float v_new = v[i] + (g[i] * g[i] - v[i]) * one_minus_beta2;
    m[i] = m_new;
    v[i] = v_new;
    w_new[i] = w[i] - lr_t * m_new / (std::sqrt(v_new) + epsilon);
  }
}

DTF_VECTOR_KERNEL void addInto(float* DTF_RESTRICT sum, const float* DTF_RESTRICT g, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) sum[i] += g[i];
}

DTF_VECTOR_KERNEL void addTwo(float* DTF_RESTRICT sum, const float* DTF_RESTRICT g0,
                              const float* DTF_RESTRICT g1, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) sum[i] = g0[i] + g1[i];
}

DTF_VECTOR_KERNEL void divide(float* DTF_RESTRICT values, uint64_t n, float by) {
  for (uint64_t i = 0; i < n; ++i) values[i] /= by;
}

// All exponent bits set: an infinity or a NaN. On bits, because arithmetic on such values may be
// assumed away.
DTF_VECTOR_KERNEL bool anyNonFinite(const float* values, uint64_t n) {
  uint32_t found = 0;
  for (uint64_t i = 0; i < n; ++i) {
    found |= (std::bit_cast<uint32_t>(values[i]) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return found != 0;
}

void meanOf(std::span<const float* const> gradients, uint64_t begin, uint64_t n, float* mean) {
  addTwo(mean, gradients[0] + begin, gradients[1] + begin, n);
  for (size_t k = 2; k < gradients.size(); ++k) addInto(mean, gradients[k] + begin, n);
  divide(mean, n, static_cast<float>(gradients.size()));
}

// `gradient` points to the value for element `begin`.
void updateChunk(const UpdateConstants& c, const UpdateArrays& arrays, const float* gradient,
                 uint64_t begin, uint64_t n) {
  const float* w = arrays.old_parameters + begin;
  float* w_new = arrays.new_parameters + begin;
  switch (c.kind) {
    case Kind::kGradientDescent:
      return gradientDescent(w, w_new, gradient, n, c.learning_rate);
    case Kind::kAdagrad:
      return adagrad(w, w_new, arrays.slots[0] + begin, gradient, n, c.learning_rate);
    default:  // kAdam
      return adam(w, w_new, arrays.slots[0] + begin, arrays.slots[1] + begin, gradient, n,
                  c.learning_rate, c.one_minus_beta1, c.one_minus_beta2, c.epsilon);
  }
}

// What TensorFlow 1 calls the optimizer in the names of its slots, and how many it has.
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

bool isMovingAverage(const cluster::OptimizerSpec& spec, uint32_t slot) {
  return spec.moving_average_decay > 0 && slot == slotsOf(spec).count;
}

std::string slotName(const cluster::OptimizerSpec& spec, uint32_t slot) {
  DTF_CHECK(slot < slotCount(spec));
  if (isMovingAverage(spec, slot)) return "ExponentialMovingAverage";
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

UpdateConstants OptimizerClock::next() {
  UpdateConstants constants;
  constants.kind = spec_.kind;
  double rate = spec_.learning_rate;
  ++state_.applies;
  state_.beta1_power *= spec_.beta1;
  state_.beta2_power *= spec_.beta2;
  if (spec_.kind == Kind::kAdam)
    rate *= std::sqrt(1 - state_.beta2_power) / (1 - state_.beta1_power);
  constants.learning_rate = static_cast<float>(rate);
  constants.one_minus_beta1 = static_cast<float>(1 - spec_.beta1);
  constants.one_minus_beta2 = static_cast<float>(1 - spec_.beta2);
  constants.epsilon = static_cast<float>(spec_.epsilon);
  return constants;
}

void updateRange(const UpdateConstants& constants, const UpdateArrays& arrays, uint64_t begin,
                 uint64_t end) {
  DTF_CHECK(!arrays.gradients.empty());
  if (arrays.gradients.size() == 1) {
    return updateChunk(constants, arrays, arrays.gradients[0] + begin, begin, end - begin);
  }
  alignas(64) float mean[kChunkElements];
  for (uint64_t at = begin; at < end; at += kChunkElements) {
    const uint64_t n = std::min(kChunkElements, end - at);
    meanOf(arrays.gradients, at, n, mean);
    updateChunk(constants, arrays, mean, at, n);
  }
}

std::optional<uint64_t> firstNonFinite(std::span<const float> values) {
  for (uint64_t at = 0; at < values.size(); at += kChunkElements) {
    const uint64_t n = std::min<uint64_t>(kChunkElements, values.size() - at);
    if (!anyNonFinite(values.data() + at, n)) continue;
    for (uint64_t i = at; i < at + n; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return std::nullopt;
}

}  // namespace dtf::ps
