#pragma once

// The order of a convolution's filter: dtf's, as TensorFlow's, is [height, width, channels,
// filters]; ONNX's and PyTorch's is [filters, channels, height, width].

#include <span>
#include <vector>

#include "common/tensor/shape.h"

namespace dtf::model_files {

// Turn a filter, which has four dimensions, [height, width, channels, filters] (DTF_CHECK).
Shape channelsFirst(const Shape& filter);
std::vector<float> channelsFirst(const Shape& filter, std::span<const float> values);

// Turn it back: `filter` is [filters, channels, height, width].
Shape channelsLast(const Shape& filter);
std::vector<float> channelsLast(const Shape& filter, std::span<const float> values);

}  // namespace dtf::model_files
