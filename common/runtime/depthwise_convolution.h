#pragma once

// Convolutions in which every output channel reads only the input channel with its own number.
// Nothing is gathered: vectors hold the channels of a pixel. As products of matrices
// (convolution.h) they would have one column each.

#include <cstddef>

#include "common/runtime/convolution.h"

namespace dtf::runtime {

// Returns whether the functions below can compute it: as many groups and output channels as input
// channels.
bool depthwiseConvolutionFits(const Convolution& c);

// Like their namesakes of convolution.h, with the same bits, for a convolution that
// depthwiseConvolutionFits(); `workspace` is unused.
void depthwiseConvolve(const Processor& cpu, const Convolution& c, const float* x,
                       const float* filter, float* y, std::byte* workspace);
void depthwiseBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                            const float* dy, float* dx, std::byte* workspace);
void depthwiseBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                             const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
