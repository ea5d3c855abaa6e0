#include "common/arena/codecs/int8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/arena/vector_kernel.h"

namespace dtf::arena {

namespace {

constexpr uint32_t kMagnitude = 0x7FFFFFFFU;
// Rounded up, a value of this magnitude could become infinite.
constexpr uint32_t kTooLarge = std::bit_cast<uint32_t>(0x1p127F);
constexpr int kMantissaBits = 23, kExponentBias = 127;
constexpr int kSmallestExponent = -126;  // of a normal float32

// Adds the values to `residual`. Returns the bits of the largest magnitude; of one that is no
// number, more than kTooLarge.
DTF_VECTOR_KERNEL uint32_t addGradientKernel(const float* DTF_RESTRICT values, uint64_t n,
                                             float* DTF_RESTRICT residual) {
  uint32_t largest = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const float due = values[i] + residual[i];
    residual[i] = due;
    largest = std::max(largest, std::bit_cast<uint32_t>(due) & kMagnitude);
  }
  return largest;
}

// Rounds to the nearest multiple of `scale`, a power of two; of two, to the even one. Quotients are
// at most 127.
DTF_VECTOR_KERNEL void roundToScaleKernel(float scale, float inverse, uint64_t n,
                                          float* DTF_RESTRICT residual, int8_t* DTF_RESTRICT to) {
  constexpr float kRounds = 0x1.8p23F;  // numbers of this size have no fraction
  for (uint64_t i = 0; i < n; ++i) {
    const float rounded = (residual[i] * inverse + kRounds) - kRounds;
    to[i] = static_cast<int8_t>(static_cast<int32_t>(rounded));
    residual[i] -= rounded * scale;
  }
}

DTF_VECTOR_KERNEL void multipliedKernel(const int8_t* DTF_RESTRICT from, float scale, uint64_t n,
                                        float* DTF_RESTRICT to) {
  for (uint64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) * scale;
}

constexpr float powerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + kExponentBias) << kMantissaBits);
}

// Returns the exponent of the smallest power of two of which `magnitude` is at most 127 times.
int exponentFor(uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> kMantissaBits) - kExponentBias;
  constexpr uint32_t kMantissa = (1U << kMantissaBits) - 1;
  constexpr uint32_t kOf127 = std::bit_cast<uint32_t>(127.0F) & kMantissa;
  return exponent - 6 + ((magnitude & kMantissa) > kOf127 ? 1 : 0);
}

}  // namespace

Int8Codec::Int8Codec(uint64_t elements, const ShardRanges& ranges)
    : BlockCodec(
          kBlock, [](uint64_t n) { return sizeof(float) + (n + 3) / 4 * 4; }, elements, ranges) {}

void Int8Codec::encodeBlock(const float* values, uint64_t n, float* residual, std::byte* to) const {
  auto* const numbers = reinterpret_cast<int8_t*>(to + sizeof(float));
  const uint32_t largest = vectorised<addGradientKernel>(values, n, residual);
  float scale = 0;
  if (largest >= kTooLarge) {
    scale = NAN;
    std::fill_n(numbers, n, int8_t{1});
    std::fill_n(residual, n, 0.0F);
  } else if (const int exponent = exponentFor(largest); exponent >= kSmallestExponent) {
    scale = powerOfTwo(exponent);
    vectorised<roundToScaleKernel>(scale, powerOfTwo(-exponent), n, residual, numbers);
  } else {
    std::fill_n(numbers, n, int8_t{0});  // the residual keeps all
  }
  std::memcpy(to, &scale, sizeof(scale));
  for (uint64_t i = n; i % 4 != 0; ++i) numbers[i] = 0;
}

void Int8Codec::decodeBlock(const std::byte* from, uint64_t n, float* to) const {
  float scale = 0;
  std::memcpy(&scale, from, sizeof(scale));
  vectorised<multipliedKernel>(reinterpret_cast<const int8_t*>(from + sizeof(float)), scale, n, to);
}

}  // namespace dtf::arena
