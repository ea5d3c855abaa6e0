#pragma once

// What products of float32 may round to.

#include <cstdint>

#include "gpu/operation.h"

namespace dtf::gpu {

// TF32 keeps 10 bits of the factors' mantissas, the tensor cores' way; sums stay float32. Of
// bfloat16 the tensor cores' way rounds nothing more.
enum class Rounding : uint8_t { kFloat32, kTf32 };

// Of a product or convolution: the attribute `tf32` allows it.
inline Rounding roundingOf(const Operation& o) {
  return o.flag("tf32") || o.inputs[0].type == Type::kBFloat16 ||
                 o.inputs[1].type == Type::kBFloat16
             ? Rounding::kTf32
             : Rounding::kFloat32;
}

}  // namespace dtf::gpu
