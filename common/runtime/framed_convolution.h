#pragma once

// Convolutions without gathering: each image is copied into a frame of zeros, where the taps of one
// row of the window are neighbours, and is read there by the registers that add up. It is what a
// first layer needs, whose gathered rows would be so short that gathering costs more than
// multiplying.

#include <cstddef>

#include "common/runtime/convolution.h"

namespace dtf::runtime {

// Whether the functions below can compute it: no groups, no dilation.
bool framedConvolutionFits(const Convolution& c);

size_t framedConvolutionWorkspaceBytes(const Processor& cpu, const Convolution& c);

// As their namesakes of convolution.h, for a convolution that framedConvolutionFits(); `workspace`
// has framedConvolutionWorkspaceBytes(), aligned to 64. Forward, each element is the chain of
// multiply-adds that it is there. The image's gradient is not among them.
void framedConvolve(const Processor& cpu, const Convolution& c, const float* x, const float* filter,
                    float* y, std::byte* workspace);
void framedConvolveBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                                  const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
