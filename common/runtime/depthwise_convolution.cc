#include "common/runtime/depthwise_convolution.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/runtime/depthwise_convolution_isa.h"

namespace dtf::runtime {
namespace {

struct DepthwiseLoops {
  void (*forward)(const DepthwiseRow& row, const float* x, const float* filter, float* y);
  void (*inputGradient)(const DepthwiseRow& row, const float* filter, const float* dy, float* dx);
  void (*filterGradient)(const DepthwiseRow& row, int64_t begin, int64_t end, const float* x,
                         const float* dy, float* dfilter);
};

DepthwiseLoops loopsOf(Isa isa) {
  DTF_CHECK_MSG(isa <= bestIsa(), std::string(isaName(isa)));
#if defined(__x86_64__)
  if (isa == Isa::kV4)
    return {v4::depthwiseForward, v4::depthwiseInputGradient, v4::depthwiseFilterGradient};
  if (isa == Isa::kV3)
    return {v3::depthwiseForward, v3::depthwiseInputGradient, v3::depthwiseFilterGradient};
#endif
  return {baseline::depthwiseForward, baseline::depthwiseInputGradient,
          baseline::depthwiseFilterGradient};
}

// The image rows that an output row reads, for rows of all images in order.
struct RowOfImages {
  RowOfImages(const Convolution& c, int64_t row_of_all) {
    const int64_t n = row_of_all / c.out_height, out_row = row_of_all % c.out_height;
    const graph::WindowAxis &height = c.window.height, &width = c.window.width;
    const int64_t first = out_row * height.stride - height.before;
    window_row =
        first >= 0 ? 0 : std::min(height.size, (-first + height.dilation - 1) / height.dilation);
    const int64_t left = std::max<int64_t>(0, c.height - first);
    const int64_t end = std::min(height.size, (left + height.dilation - 1) / height.dilation);
    const int64_t line = c.width * c.channels;
    row = {c.channels,
           c.width,
           c.out_width,
           width.size,
           width.stride,
           width.dilation,
           width.before,
           std::max<int64_t>(0, end - window_row),
           height.dilation * line};
    x = (n * c.height + first + window_row * height.dilation) * line;
    y = row_of_all * c.out_width * c.channels;
    filter = window_row * width.size * c.channels;
  }
  DepthwiseRow row;
  int64_t window_row;    // the first row of the window inside the image
  int64_t x, y, filter;  // offsets, in floats
};

int64_t rowWork(const Convolution& c) {
  return std::max<int64_t>(1, c.out_width * c.channels * c.taps() * kCopiedWork / 4);
}

}  // namespace

bool depthwiseConvolutionFits(const Convolution& c) {
  return c.groups > 1 && c.groups == c.channels && c.out_channels == c.channels;
}

void depthwiseConvolve(const Processor& cpu, const Convolution& c, const float* x,
                       const float* filter, float* y, std::byte*) {
  DTF_CHECK(depthwiseConvolutionFits(c));
  const DepthwiseLoops loops = loopsOf(cpu.isa);
  cpu.forRanges(c.batch * c.out_height, rowWork(c), [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end; ++at) {
      const RowOfImages of(c, at);
      loops.forward(of.row, x + of.x, filter + of.filter, y + of.y);
    }
  });
}

// The windows of an image overlap, so the work is split by images.
void depthwiseBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                            const float* dy, float* dx, std::byte*) {
  DTF_CHECK(depthwiseConvolutionFits(c));
  const DepthwiseLoops loops = loopsOf(cpu.isa);
  const int64_t image = c.height * c.width * c.channels;
  cpu.forRanges(c.batch, std::max<int64_t>(1, c.out_height * rowWork(c)),
                [&](int64_t begin, int64_t end, int) {
                  std::fill(dx + begin * image, dx + end * image, 0.0f);
                  for (int64_t at = begin * c.out_height; at < end * c.out_height; ++at) {
                    const RowOfImages of(c, at);
                    loops.inputGradient(of.row, filter + of.filter, dy + of.y, dx + of.x);
                  }
                });
}

// Each tap is one sum over all pixels in order, so the work is split by channels.
void depthwiseBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                             const float* dy, float* dfilter, std::byte*) {
  DTF_CHECK(depthwiseConvolutionFits(c));
  std::fill_n(dfilter, c.filterElements(), 0.0f);
  const DepthwiseLoops loops = loopsOf(cpu.isa);
  constexpr int64_t kLineFloats = 16;
  const int64_t rows = c.batch * c.out_height, taps = c.window.width.size * c.channels;
  const int64_t work = std::max<int64_t>(1, rows * rowWork(c) / c.channels);
  cpu.forRanges(c.channels, work, kLineFloats, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = 0; at < rows; ++at) {
      const RowOfImages of(c, at);
      for (int64_t i = 0; i < of.row.window_rows; ++i)
        loops.filterGradient(of.row, begin, end, x + of.x + i * of.row.x_stride, dy + of.y,
                             dfilter + of.filter + i * taps);
    }
  });
}

}  // namespace dtf::runtime
