#pragma once

// The entry points of framed_convolution_isa.cc, one per instruction set; vector.h explains why
// these are separate objects.

#include <cstdint>

namespace dtf::runtime {

// One image in its frame. The element of (output row, output column, window row, tap) is
// frame[(row * stride_height + window row) * frame_stride + column * pixel_stride + tap], where the
// taps of a window's row are its columns and channels. Value type.
struct FramedTask {
  const float* frame = nullptr;
  int64_t frame_stride = 0;   // from one row of the frame to the next
  int64_t stride_height = 1;  // in rows
  int64_t pixel_stride = 1;   // in floats: the stride of the window times the channels
  int64_t window_height = 1, taps = 1;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
};

namespace baseline {
void framedForward(const FramedTask& task, const float* filter, float* y);
void framedFilterGradient(const FramedTask& task, const float* dy,
                          float* dfilter);  // adds to dfilter
}  // namespace baseline
namespace v3 {
void framedForward(const FramedTask& task, const float* filter, float* y);
void framedFilterGradient(const FramedTask& task, const float* dy, float* dfilter);
}  // namespace v3
namespace v4 {
void framedForward(const FramedTask& task, const float* filter, float* y);
void framedFilterGradient(const FramedTask& task, const float* dy, float* dfilter);
}  // namespace v4

}  // namespace dtf::runtime
