#pragma once

// Convolutions without gathering: each image is copied into a frame of zeros, where the taps of one
// row of the window are neighbours, and accumulators read it there. This suits first layers, whose
// gathered rows are so short that gathering costs more than multiplying.

#include <cstddef>

#include "common/runtime/convolution.h"

namespace dtf::runtime {

// Returns whether the functions below can compute it: no groups, no dilation.
bool framedConvolutionFits(const Convolution& c);

size_t framedConvolutionWorkspaceBytes(const Processor& cpu, const Convolution& c);

// Like their namesakes of convolution.h, for a convolution that framedConvolutionFits();
// `workspace` has framedConvolutionWorkspaceBytes(), aligned to 64. In the forward pass each
// element is the same chain of multiply-adds as there. There is no function for the image's
// gradient.
void framedConvolve(const Processor& cpu, const Convolution& c, const float* x, const float* filter,
                    float* y, std::byte* workspace);
void framedConvolveBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                                  const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
