#pragma once

// What depthwise_convolution_isa.cc computes, once per instruction set; see vector.h for why these
// are separate objects.

#include <cstdint>

namespace dtf::runtime {

// One row of output pixels, and the rows of the image that one row of the window, or several, read
// for it. Value type.
struct DepthwiseRow {
  int64_t channels = 0;
  int64_t width = 0, out_width = 0;
  int64_t window_width = 1, stride = 1, dilation = 1, before = 0;  // see graph::WindowAxis
  int64_t window_rows = 0;                                         // of those inside the image
  int64_t x_stride = 0;  // from what one of them reads to what the next one reads
};

namespace baseline {
// `x`, `filter`: what the first of the window's rows reads, and its taps.
void depthwiseForward(const DepthwiseRow& row, const float* x, const float* filter, float* y);
void depthwiseInputGradient(const DepthwiseRow& row, const float* filter, const float* dy,
                            float* dx);  // adds to dx
// Of one row of the window, for the channels [begin, end); adds to dfilter.
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
