#pragma once

// The loops behind MaxPool and AvgPool (graph/standard_image_ops.cc), compiled once per instruction
// set. Nothing is summed across lanes, so results have the same bits on all of them.

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
  // Of the window's elements the argmax is in bytes; in int32 where it has more than 255 of them.
  void (*maxPool)(const Pooling& p, const float* x, float* y, uint8_t* argmax);
  void (*maxPoolWide)(const Pooling& p, const float* x, float* y, int32_t* argmax);
  void (*maxPoolGrad)(const Pooling& p, const float* dy, const uint8_t* argmax, float* dx);
  void (*maxPoolGradWide)(const Pooling& p, const float* dy, const int32_t* argmax, float* dx);
  // MaxPool of max(x + bias, 0), whose argmax is 255 where that is 0: maxPoolGrad lets nothing
  // through there, openGradSum is the gradient of the bias. See fusion.h.
  void (*biasReluMaxPool)(const Pooling& p, const float* x, const float* bias, float* y,
                          uint8_t* argmax);
  // Of the channels [begin, end), the sum of dy where its argmax isn't 255, in the order of the
  // pixels.
  void (*openGradSum)(const Pooling& p, int64_t begin, int64_t end, const float* dy,
                      const uint8_t* argmax, float* dbias);
  void (*avgPool)(const Pooling& p, const float* x, float* y);
  void (*avgPoolGrad)(const Pooling& p, const float* dy, float* dx);
};

// The loops for an instruction set that supportedIsas() lists. Thread-safe.
const PoolingLoops& poolingLoops(Isa isa);

}  // namespace dtf::runtime
