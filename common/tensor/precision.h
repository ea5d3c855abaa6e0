#pragma once

// The number format of a model's computation. Variables, their gradients and all messages are
// float32 in any case.

#include <cstdint>

namespace dtf {

enum class Precision : uint8_t {
  kFloat32,
  // products and convolutions may round factors to 10 bits of mantissa where a GPU gains from it
  kTf32,
  // On GPUs, tensors between layers have 8 bits of mantissa, in half the bytes; sums are float32.
  // On CPUs only products, and those convolutions that gain from it, round their factors to 8 bits.
  kBFloat16
};

}  // namespace dtf
