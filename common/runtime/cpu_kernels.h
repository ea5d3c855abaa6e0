#pragma once

// The kernels of the CPU: own vector loops (vector_loops.h), oneDNN for general matrix products.

#include "common/runtime/isa.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// Adds a CPU kernel for every op of graph::standardOps() that computes something, and for the fused
// ones of fusion.h. The loops use `isa`, one of supportedIsas().
void registerCpuKernels(KernelTable& table, Isa isa = bestIsa());

}  // namespace dtf::runtime
