#pragma once

// The kernels of the CPU: vector loops (vector_loops.h), products of matrices (matrix_product.h),
// and the fused softmax (fused_softmax.h).

#include "common/runtime/convolution_ways.h"
#include "common/runtime/kernel.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {

// Adds a CPU kernel for every op of graph::standardOps() that computes something, and for the fused
// ones of fusion.h. All use `cpu`, with one of supportedIsas(), whose pool must outlive the
// kernels; one thread at a time runs kernels that have a pool. `rule` is asked when a kernel is
// made.
void registerCpuKernels(KernelTable& table, const Processor& cpu = bestIsa(),
                        const ConvolutionRule& rule = tableRule());

}  // namespace dtf::runtime
