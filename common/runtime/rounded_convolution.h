#pragma once

// Convolutions as products of matrices whose factors are rounded to bfloat16 (matrix_product.h):
// for `train.precision: bfloat16` on CPUs. Nothing is gathered: the product is told where the
// channels that each element of a window reads lie.

#include <cstddef>

#include "common/runtime/convolution.h"
#include "common/runtime/convolution_ways.h"

namespace dtf::runtime {

// One group; windows of more than one element: channels of which a tile's row has a whole one, and
// for what goes back into the image a stride of 1.
bool roundedConvolutionFits(ConvolutionPass pass, const Convolution& c);
// Whether that is faster than without rounding where there are matrix tiles: it was measured on
// Sapphire Rapids. A pure function of its arguments, so that all workers of a job round alike.
bool roundedConvolutionPays(ConvolutionPass pass, const Convolution& c);

// All as those of convolution.h. `cpu` need not round.
size_t roundedConvolutionWorkspaceBytes(const Processor& cpu, const Convolution& c);
void roundedConvolve(const Processor& cpu, const Convolution& c, const float* x,
                     const float* filter, float* y, std::byte* workspace);
void roundedBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                          const float* dy, float* dx, std::byte* workspace);
void roundedBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                           const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
