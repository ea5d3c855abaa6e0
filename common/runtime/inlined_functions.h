#pragma once

// Branches and loops for devices that run a list of kernels and nothing else: what is known when a
// step is compiled becomes part of that list.

#include "common/runtime/kernel.h"
#include "common/runtime/lowering.h"

namespace dtf::runtime {

// What loops may be unrolled to in a step: operations, iterations, and what they stack. Each
// operation is a kernel, captured one by one.
inline constexpr size_t kUnrolledOperationsMax = 100'000;

// Replaces in `step`, for a device whose table has no kernel for them:
//   While   without cond, whose number of iterations is its maximum or a constant, by its body so
//           many times;
//   If      whose condition is a constant, by the branch that it chooses.
// Those that what is fed decides stay, and the table refuses them. Recurrent layers and their
// gradients have none of that kind.
// Errors: kBadConfig for more than kUnrolledOperationsMax, and for sequences and stacks of elements
// that don't have 4 bytes.
void inlineFunctions(LoweredStep& step, const KernelTable& kernels, DeviceType device);

}  // namespace dtf::runtime
