#pragma once

// Transposes a matrix. cuDNN needs a filter's output channels first; dtf keeps them last, like
// TensorFlow. Filters and their gradients are float32 even if the convolution is in bfloat16.

#include <cstdint>

#include "gpu/bfloat16.h"
#include "gpu/device.h"

namespace dtf::gpu {

// Sets to[j, i] = from[i, j] for `rows` x `columns`, at most 2^31 tiles of 32 x 32, on the device's
// stream.
void transposeMatrix(Device& device, const float* from, float* to, int64_t rows, int64_t columns);
void transposeMatrix(Device& device, const float* from, BFloat16* to, int64_t rows,
                     int64_t columns);
void transposeMatrix(Device& device, const BFloat16* from, float* to, int64_t rows,
                     int64_t columns);

}  // namespace dtf::gpu
