#include "common/runtime/framed_convolution.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/runtime/framed_convolution_isa.h"
#include "common/runtime/ordered_sum.h"

namespace dtf::runtime {
namespace {

using graph::WindowAxis;

// Returns the rows or columns of the frame: the extent of all windows, and the image.
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

size_t frameBytes(const Convolution& c) {
  return static_cast<size_t>(frameHeight(c) * frameWidth(c) * c.channels) * sizeof(float);
}

// Calls f(n, task) for the images [begin, end), after copying each into its frame.
template <class F>
void forEachFrame(const Convolution& c, const float* x, int64_t begin, int64_t end,
                  std::byte* workspace, const F& f) {
  DTF_CHECK(framedConvolutionFits(c));
  DTF_CHECK(workspace != nullptr && reinterpret_cast<uintptr_t>(workspace) % 64 == 0);
  float* const frame = reinterpret_cast<float*>(workspace);
  const FramedTask task = taskOf(c, frame);
  std::fill_n(frame, frameHeight(c) * task.frame_stride, 0.0f);
  const int64_t line = c.width * c.channels;
  float* const first =
      frame + c.window.height.before * task.frame_stride + c.window.width.before * c.channels;
  for (int64_t n = begin; n < end; ++n) {
    for (int64_t row = 0; row < c.height; ++row) {
      std::memcpy(first + row * task.frame_stride, x + (n * c.height + row) * line,
                  static_cast<size_t>(line) * sizeof(float));
    }
    f(n, task);
  }
}

int64_t outImage(const Convolution& c) {
  return c.out_height * c.out_width * c.out_channels;
}

int64_t imageWork(const Convolution& c) {
  return outImage(c) * c.taps() * kMultiplyAddWork;
}

void filterGradient(Isa isa, const FramedTask& task, const float* dy, float* dfilter) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::framedFilterGradient(task, dy, dfilter);
  if (isa == Isa::kV3) return v3::framedFilterGradient(task, dy, dfilter);
#endif
  baseline::framedFilterGradient(task, dy, dfilter);
}

// Bound for the results of several threads in a round: one gradient for each image.
constexpr int64_t kRoundFloats = 256 * 1024;

int64_t roundImages(const Processor& cpu, const Convolution& c) {
  if (cpu.threads() == 1) return 0;
  return std::min(c.batch, std::max<int64_t>(cpu.threads(), kRoundFloats / c.filterElements()));
}

}  // namespace

bool framedConvolutionFits(const Convolution& c) {
  return c.groups == 1 && c.window.height.dilation == 1 && c.window.width.dilation == 1 &&
         !c.empty();
}

size_t framedConvolutionWorkspaceBytes(const Processor& cpu, const Convolution& c) {
  DTF_CHECK(framedConvolutionFits(c));
  return PerThread(cpu, frameBytes(c)).bytes() +
         static_cast<size_t>(roundImages(cpu, c) * c.filterElements()) * sizeof(float);
}

void framedConvolve(const Processor& cpu, const Convolution& c, const float* x, const float* filter,
                    float* y, std::byte* workspace) {
  const int64_t image = outImage(c);
  const PerThread frames(cpu, frameBytes(c));
  const auto forward = [&](int64_t n, const FramedTask& task) {
#if defined(__x86_64__)
    if (cpu.isa == Isa::kV4) return v4::framedForward(task, filter, y + n * image);
    if (cpu.isa == Isa::kV3) return v3::framedForward(task, filter, y + n * image);
#endif
    baseline::framedForward(task, filter, y + n * image);
  };
  cpu.forRanges(c.batch, imageWork(c), [&](int64_t begin, int64_t end, int thread) {
    forEachFrame(c, x, begin, end, frames.of(workspace, thread), forward);
  });
}

// A single thread adds each image's gradient to the sum. Several threads compute the gradients of a
// round of images and add them in the same order, for the same bits.
void framedConvolveBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                                  const float* dy, float* dfilter, std::byte* workspace) {
  const int64_t image = outImage(c), taps = c.filterElements();
  std::fill_n(dfilter, taps, 0.0f);
  if (cpu.threads() == 1) {
    forEachFrame(c, x, 0, c.batch, workspace, [&](int64_t n, const FramedTask& task) {
      filterGradient(cpu.isa, task, dy + n * image, dfilter);
    });
    return;
  }
  const PerThread frames(cpu, frameBytes(c));
  float* const gradients = reinterpret_cast<float*>(workspace + frames.bytes());
  const int64_t round = roundImages(cpu, c);
  for (int64_t first = 0; first < c.batch; first += round) {
    const int64_t images = std::min(round, c.batch - first);
    cpu.forRanges(images, imageWork(c), [&](int64_t begin, int64_t end, int thread) {
      std::fill(gradients + begin * taps, gradients + end * taps, 0.0f);
      forEachFrame(c, x, first + begin, first + end, frames.of(workspace, thread),
                   [&](int64_t n, const FramedTask& task) {
                     filterGradient(cpu.isa, task, dy + n * image, gradients + (n - first) * taps);
                   });
    });
    addInOrder(cpu, gradients, images, taps, dfilter);
  }
}

}  // namespace dtf::runtime
