#pragma once

// Image summaries of a batch, as TensorBoard shows them.

#include <cstdint>
#include <span>
#include <vector>

#include "common/summary/event.h"
#include "common/tensor/tensor.h"

namespace dtf::train {

// Largest total size of the images in one summary. The event writer's queue holds several summaries
// of this size.
inline constexpr uint64_t kSummaryImagesBytesMax = uint64_t{16} << 20;

// Scales numbers to pixels as TensorFlow's image summaries do. Without negative numbers, the
// largest becomes 255. Otherwise 0 becomes 127, and the scale is the largest at which all numbers
// fit. A number that is not finite gets the pixel of 0.
std::vector<uint8_t> pixelsOf(std::span<const float> numbers);

// Appends the first images of `features` to `to`, as features/image/N: at most `count`, and at most
// as many as fit in `bytes_max`. `features` is [batch, height, width] or [batch, height, width,
// channels]. Returns how many of the requested images did not fit.
uint64_t addImages(const Tensor& features, uint64_t count, summary::StepSummary& to,
                   uint64_t bytes_max = kSummaryImagesBytesMax);

}  // namespace dtf::train
