#pragma once

// What a model is computed in. Variables, their gradients and all that is sent are float32 in any
// case.

#include <cstdint>

namespace dtf {

enum class Precision : uint8_t {
  kFloat32,
  kTf32,  // products and convolutions may round their factors to 10 bits of mantissa, where a GPU
          // is faster for it
  // Of GPUs: what lies between the layers has 8 bits of mantissa, in half the bytes; sums are
  // float32. Of CPUs: products, and those convolutions that are faster for it, round their factors
  // to that, and nothing else does.
  kBFloat16
};

}  // namespace dtf
