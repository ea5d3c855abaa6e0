#pragma once

// Mixed precision: float32 variables, and the work between them in what the hardware is fast at. P.
// Micikevicius et al., "Mixed Precision Training" (ICLR 2018).

#include "common/runtime/kernel.h"
#include "common/runtime/lowering.h"
#include "common/tensor/precision.h"

namespace dtf::runtime {

// float32 to bfloat16 or back, as the specs of its input and output say.
inline constexpr std::string_view kCastPrecisionOp = "_CastPrecision";
// Of an operation of a CPU: its products are of factors that are rounded to bfloat16.
inline constexpr std::string_view kRoundedFactors = "rounded_factors";

// Rewrites `step`, whose operations are in topological order, for a device of the type `device`:
//   kTf32      products and convolutions get the attribute `tf32`; nothing on CPUs, which keep all
//              digits.
//   kBFloat16  products and convolutions read and make bfloat16, and so do some ops where all that
//              they read is: sums, biases, relu, poolings, batch normalisations. All others,
//              losses, statistics, gradients of variables, and what is fetched are float32. A
//              product that is a gradient, or a term of one, isn't rounded; that of a filter is by
//              cuDNN. On CPUs products and convolutions get the attribute kRoundedFactors, which
//              those heed that are faster for it (convolution_ways.h), and all tensors are float32:
//              what is read from memory is not what they wait for.
// Errors: kBadConfig, where a GPU has no kernels for bfloat16.
void usePrecision(LoweredStep& step, Precision precision, const KernelTable& kernels,
                  DeviceType device);

}  // namespace dtf::runtime
