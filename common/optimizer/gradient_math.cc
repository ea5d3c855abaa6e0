#include "common/optimizer/gradient_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "common/arena/vector_kernel.h"
#include "common/base/check.h"
#include "common/optimizer/optimizer_formulae.h"

namespace dtf::optimizer {

namespace {

constexpr uint64_t kLanes = 16;

DTF_VECTOR_KERNEL void addIntoKernel(float* DTF_RESTRICT sum, const float* DTF_RESTRICT values,
                                     uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) sum[i] += values[i];
}

DTF_VECTOR_KERNEL void addTwo(float* DTF_RESTRICT sum, const float* DTF_RESTRICT a,
                              const float* DTF_RESTRICT b, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

DTF_VECTOR_KERNEL void divide(float* DTF_RESTRICT values, uint64_t n, float by) {
  for (uint64_t i = 0; i < n; ++i) values[i] /= by;
}

DTF_VECTOR_KERNEL void addScaledKernel(float* DTF_RESTRICT sum, const float* DTF_RESTRICT values,
                                       float factor, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) sum[i] += factor * values[i];
}

DTF_VECTOR_KERNEL void scaleKernel(float* DTF_RESTRICT values, float factor, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) values[i] *= factor;
}

DTF_VECTOR_KERNEL void clipKernel(float* DTF_RESTRICT values, float bound, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) values[i] = clippedOf(values[i], bound);
}

DTF_VECTOR_KERNEL void averageKernel(float* DTF_RESTRICT average, const float* DTF_RESTRICT values,
                                     float one_minus_decay, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) average[i] = movedOf(average[i], values[i], one_minus_decay);
}

// Lane j sums the squares of elements j, j + 16, ...: n is a multiple of 16.
DTF_VECTOR_KERNEL void laneSums(const float* DTF_RESTRICT values, uint64_t n,
                                double* DTF_RESTRICT lanes) {
  double sums[kLanes] = {};
  for (uint64_t i = 0; i < n; i += kLanes) {
    for (uint64_t j = 0; j < kLanes; ++j) {
      const double value = values[i + j];
      sums[j] += value * value;
    }
  }
  for (uint64_t j = 0; j < kLanes; ++j) lanes[j] = sums[j];
}

// Finds exponents with all bits set: an infinity or a NaN. It tests bits, because the compiler may
// assume arithmetic on such values away.
DTF_VECTOR_KERNEL bool anyNonFinite(const float* values, uint64_t n) {
  uint32_t found = 0;
  for (uint64_t i = 0; i < n; ++i) {
    found |= (std::bit_cast<uint32_t>(values[i]) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return found != 0;
}

double chunkSum(const float* values, uint64_t n) {
  double lanes[kLanes];
  const uint64_t whole = n / kLanes * kLanes;
  arena::vectorised<laneSums>(values, whole, lanes);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (uint64_t i = whole; i < n; ++i) sum += double{values[i]} * double{values[i]};
  return sum;
}

}  // namespace

namespace {

void weightedMean(std::span<const float* const> gradients, std::span<const uint32_t> weights,
                  uint64_t begin, uint64_t n, float* mean) {
  uint64_t sum = 0;
  for (const uint32_t weight : weights) sum += weight;
  const auto part = [&](size_t k) {
    return static_cast<float>(static_cast<double>(weights[k]) / static_cast<double>(sum));
  };
  std::copy_n(gradients[0] + begin, n, mean);
  scale(mean, part(0), n);
  for (size_t k = 1; k < gradients.size(); ++k) addScaled(mean, gradients[k] + begin, part(k), n);
}

}  // namespace

void meanOf(std::span<const float* const> gradients, std::span<const uint32_t> weights,
            uint64_t begin, uint64_t n, float* mean) {
  DTF_CHECK(gradients.size() >= 2 && (weights.empty() || weights.size() == gradients.size()));
  if (std::ranges::adjacent_find(weights, std::not_equal_to{}) != weights.end())
    return weightedMean(gradients, weights, begin, n, mean);
  arena::vectorised<addTwo>(mean, gradients[0] + begin, gradients[1] + begin, n);
  for (size_t k = 2; k < gradients.size(); ++k) addInto(mean, gradients[k] + begin, n);
  arena::vectorised<divide>(mean, n, static_cast<float>(gradients.size()));
}

void addInto(float* sum, const float* values, uint64_t n) {
  arena::vectorised<addIntoKernel>(sum, values, n);
}

void addScaled(float* sum, const float* values, float factor, uint64_t n) {
  arena::vectorised<addScaledKernel>(sum, values, factor, n);
}

void scale(float* values, float factor, uint64_t n) {
  arena::vectorised<scaleKernel>(values, factor, n);
}

void clipByValue(float* values, float bound, uint64_t n) {
  arena::vectorised<clipKernel>(values, bound, n);
}

void moveAverage(float* average, const float* values, float one_minus_decay, uint64_t n) {
  arena::vectorised<averageKernel>(average, values, one_minus_decay, n);
}

double sumOfSquares(std::span<const float> values) {
  double sum = 0;
  for (uint64_t at = 0; at < values.size(); at += kChunkElements) {
    sum += chunkSum(values.data() + at, std::min<uint64_t>(kChunkElements, values.size() - at));
  }
  return sum;
}

std::optional<uint64_t> firstNonFinite(std::span<const float> values) {
  for (uint64_t at = 0; at < values.size(); at += kChunkElements) {
    const uint64_t n = std::min<uint64_t>(kChunkElements, values.size() - at);
    if (!arena::vectorised<anyNonFinite>(values.data() + at, n)) continue;
    for (uint64_t i = at; i < at + n; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return std::nullopt;
}

}  // namespace dtf::optimizer
