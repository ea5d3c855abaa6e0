#pragma once

// What follows a dense layer's product where its library can't do both at once.

#include <cstdint>

#include "gpu/device.h"

namespace dtf::gpu {

// y[i] += bias[i % columns], and what is below 0 becomes 0 where `relu` is set. Gives it to the device's stream.
void addBias(Device& device, float* y, const float* bias, int64_t elements, int64_t columns,
             bool relu);

}  // namespace dtf::gpu
