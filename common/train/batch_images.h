#pragma once

// The images of a batch as TensorBoard shows them.

#include <cstdint>
#include <span>
#include <vector>

#include "common/summary/event.h"
#include "common/tensor/tensor.h"

namespace dtf::train {

// Of the pixels of one summary. The event writer's queue holds several summaries of this size.
inline constexpr uint64_t kSummaryImagesBytesMax = uint64_t{16} << 20;

// Numbers as TensorFlow's image summaries show them: the largest becomes 255; where some are below
// 0, 0 becomes 127. A number that is not finite is shown as 0 is.
std::vector<uint8_t> pixelsOf(std::span<const float> numbers);

// Adds the first images of `features` to `to`, as features/image/N: at most `count`, and as many as
// `bytes_max` has room for. `features`: [batch, height, width], or with channels as a fourth size.
// Returns how many of the images that were asked for found no room.
uint64_t addImages(const Tensor& features, uint64_t count, summary::StepSummary& to,
                   uint64_t bytes_max = kSummaryImagesBytesMax);

}  // namespace dtf::train
