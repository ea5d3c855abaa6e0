#include "common/runtime/framed_convolution.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/runtime/framed_convolution_isa.h"

namespace dtf::runtime {
namespace {

using graph::WindowAxis;

// Rows or columns of the frame: what the windows reach, and the image.
int64_t frameLength(const WindowAxis& axis, int64_t positions, int64_t length) {
  return std::max((positions - 1) * axis.stride + axis.size, axis.before + length);
}

int64_t frameHeight(const Convolution& c) {
  return frameLength(c.window.height, c.out_height, c.height);
}
int64_t frameWidth(const Convolution& c) {
  return frameLength(c.window.width, c.out_width, c.width);
}

FramedTask taskOf(const Convolution& c, const float* frame) {
  FramedTask t;
  t.frame = frame;
  t.frame_stride = frameWidth(c) * c.channels;
  t.stride_height = c.window.height.stride;
  t.pixel_stride = c.window.width.stride * c.channels;
  t.window_height = c.window.height.size;
  t.taps = c.window.width.size * c.channels;
  t.out_height = c.out_height, t.out_width = c.out_width, t.out_channels = c.out_channels;
  return t;
}

// Calls f(n, task) for every image, which lies in its frame then.
template <class F>
void forEachFrame(const Convolution& c, const float* x, std::byte* workspace, const F& f) {
  DTF_CHECK(framedConvolutionFits(c));
  DTF_CHECK(workspace != nullptr && reinterpret_cast<uintptr_t>(workspace) % 64 == 0);
  float* const frame = reinterpret_cast<float*>(workspace);
  const FramedTask task = taskOf(c, frame);
  std::fill_n(frame, frameHeight(c) * task.frame_stride, 0.0f);
  const int64_t line = c.width * c.channels;
  float* const first =
      frame + c.window.height.before * task.frame_stride + c.window.width.before * c.channels;
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t row = 0; row < c.height; ++row) {
      std::memcpy(first + row * task.frame_stride, x + (n * c.height + row) * line,
                  static_cast<size_t>(line) * sizeof(float));
    }
    f(n, task);
  }
}

}  // namespace

bool framedConvolutionFits(const Convolution& c) {
  return c.groups == 1 && c.window.height.dilation == 1 && c.window.width.dilation == 1 &&
         !c.empty();
}

size_t framedConvolutionWorkspaceBytes(Isa, const Convolution& c) {
  DTF_CHECK(framedConvolutionFits(c));
  return static_cast<size_t>(frameHeight(c) * frameWidth(c) * c.channels) * sizeof(float);
}

void framedConvolve(Isa isa, const Convolution& c, const float* x, const float* filter, float* y,
                    std::byte* workspace) {
  const int64_t image = c.out_height * c.out_width * c.out_channels;
  forEachFrame(c, x, workspace, [&](int64_t n, const FramedTask& task) {
#if defined(__x86_64__)
    if (isa == Isa::kV4) return v4::framedForward(task, filter, y + n * image);
    if (isa == Isa::kV3) return v3::framedForward(task, filter, y + n * image);
#endif
    baseline::framedForward(task, filter, y + n * image);
  });
}

void framedConvolveBackpropFilter(Isa isa, const Convolution& c, const float* x, const float* dy,
                                  float* dfilter, std::byte* workspace) {
  const int64_t image = c.out_height * c.out_width * c.out_channels;
  std::fill_n(dfilter, c.filterElements(), 0.0f);
  forEachFrame(c, x, workspace, [&](int64_t n, const FramedTask& task) {
#if defined(__x86_64__)
    if (isa == Isa::kV4) return v4::framedFilterGradient(task, dy + n * image, dfilter);
    if (isa == Isa::kV3) return v3::framedFilterGradient(task, dy + n * image, dfilter);
#endif
    baseline::framedFilterGradient(task, dy + n * image, dfilter);
  });
}

}  // namespace dtf::runtime
