#pragma once

// Mixed precision: float32 variables, and a faster format for the computation between them. P.
// Micikevicius et al., "Mixed Precision Training" (ICLR 2018).

#include "common/runtime/kernel.h"
#include "common/runtime/lowering.h"
#include "common/tensor/precision.h"

namespace dtf::runtime {

// float32 to bfloat16 or back, according to the specs of its input and output.
inline constexpr std::string_view kCastPrecisionOp = "_CastPrecision";
// For an operation on a CPU: its products round their factors to bfloat16.
inline constexpr std::string_view kRoundedFactors = "rounded_factors";

// Rewrites `step`, with operations in topological order, for a device of the type `device`:
//   kTf32      products and convolutions get the attribute `tf32`; nothing on CPUs, which keep all
//              digits.
//   kBFloat16  products and convolutions read and write bfloat16, and so do sums, biases, relu,
//              poolings and batch normalisations if all their inputs are bfloat16. All other
//              operations, losses, statistics, gradients of variables and fetches are float32. A
//              product that is a gradient, or a term of one, isn't rounded; the gradient of a
//              filter is rounded by cuDNN. On CPUs, products and convolutions get the attribute
//              kRoundedFactors, which only takes effect where it is faster (convolution_ways.h),
//              and all tensors are float32: reading memory is not the bottleneck.
// Errors: kBadConfig if a GPU has no kernels for bfloat16.
void usePrecision(LoweredStep& step, Precision precision, const KernelTable& kernels,
                  DeviceType device);

}  // namespace dtf::runtime
