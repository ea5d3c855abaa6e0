#pragma once

// The entry points of depthwise_convolution_isa.cc, one per instruction set; vector.h explains why
// these are separate objects.

#include <cstdint>

namespace dtf::runtime {

// One row of output pixels, and the image rows under one or several rows of the window. Value type.
struct DepthwiseRow {
  int64_t channels = 0;
  int64_t width = 0, out_width = 0;
  int64_t window_width = 1, stride = 1, dilation = 1, before = 0;  // see graph::WindowAxis
  int64_t window_rows = 0;  // rows of the window inside the image
  int64_t x_stride = 0;     // distance of the image rows under neighbouring rows of the window
};

namespace baseline {
// `x`, `filter`: the image row and the taps of the window's first row.
void depthwiseForward(const DepthwiseRow& row, const float* x, const float* filter, float* y);
void depthwiseInputGradient(const DepthwiseRow& row, const float* filter, const float* dy,
                            float* dx);  // adds to dx
// One row of the window, channels [begin, end); adds to dfilter.
void depthwiseFilterGradient(const DepthwiseRow& row, int64_t begin, int64_t end, const float* x,
                             const float* dy, float* dfilter);
}  // namespace baseline
namespace v3 {
void depthwiseForward(const DepthwiseRow& row, const float* x, const float* filter, float* y);
void depthwiseInputGradient(const DepthwiseRow& row, const float* filter, const float* dy,
                            float* dx);
void depthwiseFilterGradient(const DepthwiseRow& row, int64_t begin, int64_t end, const float* x,
                             const float* dy, float* dfilter);
}  // namespace v3
namespace v4 {
void depthwiseForward(const DepthwiseRow& row, const float* x, const float* filter, float* y);
void depthwiseInputGradient(const DepthwiseRow& row, const float* filter, const float* dy,
                            float* dx);
void depthwiseFilterGradient(const DepthwiseRow& row, int64_t begin, int64_t end, const float* x,
                             const float* dy, float* dfilter);
}  // namespace v4

}  // namespace dtf::runtime
