#pragma once

// Branches and loops for devices that only run a list of kernels: those decided at compile time
// become part of the list.

#include "common/runtime/kernel.h"
#include "common/runtime/lowering.h"

namespace dtf::runtime {

// The limit for unrolled loops in a step: operations, iterations, and stacked slices. Each
// operation is a kernel, captured one by one.
inline constexpr size_t kUnrolledOperationsMax = 100'000;

// Replaces in `step`, for a device without kernels for them:
//   While   without cond and with a constant number of iterations, by so many copies of its body;
//   If      with a constant condition, by the chosen branch.
// Loops and branches that depend on fed values stay, and the table rejects them. Recurrent layers
// and their gradients have none.
// Errors: kBadConfig beyond kUnrolledOperationsMax, and for sequences and stacks of elements that
// don't have 4 bytes.
void inlineFunctions(LoweredStep& step, const KernelTable& kernels, DeviceType device);

}  // namespace dtf::runtime
