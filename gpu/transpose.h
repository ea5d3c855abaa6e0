#pragma once

// A matrix of floats transposed. cuDNN wants a filter's output channels first, dtf keeps them last, as TensorFlow.

#include <cstdint>

#include "gpu/device.h"

namespace dtf::gpu {

// to[j, i] = from[i, j] for `rows` x `columns`. Gives it to the device's stream.
void transposeMatrix(Device& device, const float* from, float* to, int64_t rows, int64_t columns);

}  // namespace dtf::gpu
