#pragma once

// The optimizers' formulae as loops: one pass over the arrays, each element from the same element
// of its inputs. Internal to this library; others use optimizer.h.

#include <array>
#include <cstdint>

#include "common/optimizer/optimizer.h"

namespace dtf::optimizer {

// Arrays of n elements; w_new may not overlap any other. Slots are updated in place.
struct KernelArrays {
  const float* w = nullptr;
  float* w_new = nullptr;
  std::array<float*, 3> slots{};
  const float* g = nullptr;
  uint64_t n = 0;
};

// Returns the arrays of elements [begin, begin + n). `gradient` points to the value for `begin`.
KernelArrays kernelArrays(const UpdateArrays& arrays, const float* gradient, uint64_t begin,
                          uint64_t n);

// Applies the formula of constants.kind, without the steps that all kinds share: mean, clipping,
// L2, moving average.
void applyKernel(const UpdateConstants& constants, const KernelArrays& arrays);

// Computes lamb's update before it is scaled by learning_rate and trust ratio, into `direction`;
// changes no slot.
void lambDirection(const UpdateConstants& constants, const KernelArrays& arrays, float* direction);

}  // namespace dtf::optimizer
