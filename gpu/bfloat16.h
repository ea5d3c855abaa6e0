#pragma once

// bfloat16: the upper half of a float32, for kernels that compute in float32 and store results in
// half the bytes.

#include <cstdint>
#include <cstring>

#include "gpu/portable.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#endif

namespace dtf::gpu {

// Rounds a float32 to the nearest value, ties to even; a NaN stays NaN. Value type.
class BFloat16 {
 public:
  BFloat16() = default;
  DTF_HOST_DEVICE BFloat16(float value) : bits_(bitsOf(value)) {}  // NOLINT: as float to double
  DTF_HOST_DEVICE operator float() const {                         // NOLINT: likewise
    const uint32_t bits = uint32_t{bits_} << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  static DTF_HOST_DEVICE uint16_t bitsOf(float value) {
#if defined(__CUDA_ARCH__)
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    // keeps some of a NaN's bits
    if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
#endif
  }

  uint16_t bits_;
};

}  // namespace dtf::gpu
