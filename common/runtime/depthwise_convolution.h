#pragma once

// Convolutions whose every output channel reads one input channel, the one with its number: nothing
// is gathered, as the channels of a pixel are what vectors hold. The products of matrices that
// convolution.h makes of them have one column each.

#include <cstddef>

#include "common/runtime/convolution.h"

namespace dtf::runtime {

// Whether the functions below can compute it: as many groups and output channels as channels.
bool depthwiseConvolutionFits(const Convolution& c);

// As their namesakes of convolution.h, with the same bits, for a convolution that
// depthwiseConvolutionFits(); `workspace` isn't used.
void depthwiseConvolve(const Processor& cpu, const Convolution& c, const float* x,
                       const float* filter, float* y, std::byte* workspace);
void depthwiseBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                            const float* dy, float* dx, std::byte* workspace);
void depthwiseBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                             const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
