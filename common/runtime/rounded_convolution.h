#pragma once

// Convolutions as products of matrices whose factors are rounded to bfloat16 (matrix_product.h),
// for `train.precision: bfloat16` on CPUs. Nothing is gathered: the product gets pointers to the
// channels under each element of a window.

#include <cstddef>

#include "common/runtime/convolution.h"
#include "common/runtime/convolution_ways.h"

namespace dtf::runtime {

// Requires one group. Windows of more than one element need channels in whole rows of a tile, and a
// stride of 1 for the gradient of the image.
bool roundedConvolutionFits(ConvolutionPass pass, const Convolution& c);
// Returns whether it is faster than without rounding on processors with matrix tiles; measured on
// Sapphire Rapids. A pure function of its arguments, so that all workers of a job round alike.
bool roundedConvolutionPays(ConvolutionPass pass, const Convolution& c);

// Like the functions of convolution.h. `cpu` need not round.
size_t roundedConvolutionWorkspaceBytes(const Processor& cpu, const Convolution& c);
void roundedConvolve(const Processor& cpu, const Convolution& c, const float* x,
                     const float* filter, float* y, std::byte* workspace);
void roundedBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                          const float* dy, float* dx, std::byte* workspace);
void roundedBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                           const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
