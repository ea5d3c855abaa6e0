#pragma once

// The kernels of the CPU: vector loops (vector_loops.h), products of matrices (matrix_product.h), and
// the fused softmax (fused_softmax.h).

#include "common/base/isa.h"
#include "common/runtime/convolution_ways.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// Adds a CPU kernel for every op of graph::standardOps() that computes something, and for the fused
// ones of fusion.h. All use `isa`, one of supportedIsas(); `winograd`: see fastestWay().
void registerCpuKernels(KernelTable& table, Isa isa = bestIsa(), bool winograd = winogradAllowed());

}  // namespace dtf::runtime
