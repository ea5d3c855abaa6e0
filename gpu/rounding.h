#pragma once

// The allowed rounding of float32 products.

#include <cstdint>

#include "gpu/operation.h"

namespace dtf::gpu {

// TF32 keeps 10 bits of the factors' mantissas, as tensor cores do; sums stay float32. For bfloat16
// tensor cores round nothing more.
enum class Rounding : uint8_t { kFloat32, kTf32 };

// Returns the rounding of a product or convolution: the attribute `tf32` allows kTf32.
inline Rounding roundingOf(const Operation& o) {
  return o.flag("tf32") || o.inputs[0].type == Type::kBFloat16 ||
                 o.inputs[1].type == Type::kBFloat16
             ? Rounding::kTf32
             : Rounding::kFloat32;
}

}  // namespace dtf::gpu
