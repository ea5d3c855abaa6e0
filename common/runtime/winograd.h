#pragma once

// Convolutions with a window of 3x3 or 5x5 and a stride of 1 by minimal filtering, after S.
// Winograd and A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): tiles
// of 6 x 6 elements of the image and the filter are transformed so that the convolution becomes 36
// products of matrices, which take 4 (3x3) or 2.8 (5x5) times fewer multiplications.
//
// The results differ from those of convolution.h by some 1e-5 of their root mean square, as the
// transforms round: see README.md.

#include <cstddef>

#include "common/runtime/convolution.h"

namespace dtf::runtime {

// Returns whether the functions below can compute it. Both numbers of channels must be multiples of
// 16.
bool winogradFits(const Convolution& c);

// The multiplications of the forward pass for each pair of an input and an output channel; a plain
// sum takes one for each element of the window and output pixel.
int64_t winogradMultiplications(const Convolution& c);

size_t winogradWorkspaceBytes(const Processor& cpu, const Convolution& c);

// Like their namesakes of convolution.h, for a convolution that winogradFits(); `workspace` has
// winogradWorkspaceBytes(), aligned to 64.
void winogradConvolve(const Processor& cpu, const Convolution& c, const float* x,
                      const float* filter, float* y, std::byte* workspace);
void winogradBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                           const float* dy, float* dx, std::byte* workspace);
void winogradBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                            const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
