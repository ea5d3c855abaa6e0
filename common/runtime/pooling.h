#pragma once

// The loops behind MaxPool and AvgPool (graph/standard_image_ops.cc), compiled once per instruction
// set. They never sum across lanes, so all instruction sets give the same bits.

#include <cstdint>

#include "common/base/isa.h"
#include "common/graph/window.h"

namespace dtf::runtime {

// Images [batch, height, width, channels] pooled to [batch, out_height, out_width, channels].
// Value type.
struct Pooling {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0;
  // The window, by axis; see graph/window.h.
  int64_t window_height = 1, window_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  int64_t padding_top = 0, padding_left = 0;

  static Pooling of(const Shape& x, const Shape& y, const graph::Attributes& attributes);
};

struct PoolingLoops {
  // The argmax is in bytes, or in int32 if the window has more than 255 elements.
  void (*maxPool)(const Pooling& p, const float* x, float* y, uint8_t* argmax);
  void (*maxPoolWide)(const Pooling& p, const float* x, float* y, int32_t* argmax);
  void (*maxPoolGrad)(const Pooling& p, const float* dy, const uint8_t* argmax, float* dx);
  void (*maxPoolGradWide)(const Pooling& p, const float* dy, const int32_t* argmax, float* dx);
  // MaxPool of max(x + bias, 0). Its argmax is 255 where the result is 0: maxPoolGrad passes no
  // gradient there, and openGradSum computes the gradient of the bias. See fusion.h.
  void (*biasReluMaxPool)(const Pooling& p, const float* x, const float* bias, float* y,
                          uint8_t* argmax);
  // Sums dy over the pixels whose argmax isn't 255, in their order, for the channels [begin, end).
  void (*openGradSum)(const Pooling& p, int64_t begin, int64_t end, const float* dy,
                      const uint8_t* argmax, float* dbias);
  void (*avgPool)(const Pooling& p, const float* x, float* y);
  void (*avgPoolGrad)(const Pooling& p, const float* dy, float* dx);
};

// Returns the loops for an instruction set listed by supportedIsas(). Thread-safe.
const PoolingLoops& poolingLoops(Isa isa);

}  // namespace dtf::runtime
