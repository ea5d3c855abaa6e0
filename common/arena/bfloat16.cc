#include "common/arena/bfloat16.h"

#include <bit>

#include "common/arena/vector_kernel.h"

namespace dtf::arena {

namespace {

DTF_VECTOR_KERNEL void narrowKernel(const float* DTF_RESTRICT values, uint64_t n,
                                    uint16_t* DTF_RESTRICT to) {
  for (uint64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(values[i]);
    const uint32_t rounded = (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
    const uint32_t quiet = bits >> 16 | 0x40U;  // rounding could carry a NaN to infinity
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    to[i] = static_cast<uint16_t>(is_nan ? quiet : rounded);
  }
}

DTF_VECTOR_KERNEL void widenKernel(const uint16_t* DTF_RESTRICT values, uint64_t n,
                                   float* DTF_RESTRICT to) {
  for (uint64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(uint32_t{values[i]} << 16);
}

}  // namespace

void toBFloat16(const float* values, uint64_t n, uint16_t* to) {
  vectorised<narrowKernel>(values, n, to);
}

void fromBFloat16(const uint16_t* values, uint64_t n, float* to) {
  vectorised<widenKernel>(values, n, to);
}

}  // namespace dtf::arena
