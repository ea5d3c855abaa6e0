#pragma once

// The kernels of the CPU: vector loops (vector_loops.h), products of matrices (matrix_product.h),
// and the fused softmax (fused_softmax.h).

#include "common/runtime/convolution_ways.h"
#include "common/runtime/kernel.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {

// Adds a CPU kernel for every computing op of graph::standardOps(), and for the fused ones of
// fusion.h. All use `cpu`, with one of supportedIsas(); its pool must outlive the kernels, and one
// thread at a time runs kernels with a pool. Kernels consult `rule` when they are made.
void registerCpuKernels(KernelTable& table, const Processor& cpu = bestIsa(),
                        const ConvolutionRule& rule = tableRule());

}  // namespace dtf::runtime
