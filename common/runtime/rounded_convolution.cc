#include "common/runtime/rounded_convolution.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/runtime/matrix_product.h"

namespace dtf::runtime {
namespace {

using graph::WindowAxis;

constexpr int64_t kRunGrain = 32;       // floats: MatrixProduct::a_run
constexpr int64_t kBlockPixels = 1024;  // their runs are listed together
constexpr int64_t kGrain = 32;          // rows of C: whole tiles

// The image that a product reads along windows: x, or dy in the backward pass.
struct Image {
  const float* data;
  int64_t height, width, channels;
};

// The window of a pixel: its element i is at first + i * step.
struct Walk {
  int64_t positions;  // pixels along the axis
  int64_t stride, first, step, size;

  static Walk forward(const WindowAxis& axis, int64_t positions) {
    return {positions, axis.stride, -axis.before, axis.dilation, axis.size};
  }
  // For the image's own pixels in dy: the windows that cover each of them.
  static Walk back(const WindowAxis& axis, int64_t positions) {
    return {positions, 1, axis.before, -axis.dilation, axis.size};
  }
};

struct Walks {
  Walk high, wide;
  int64_t windowSize() const { return high.size * wide.size; }
};

// Lists one run of channels for each element of the windows of [first, first + count).
void listRuns(const Image& image, const Walks& w, int64_t first, int64_t count,
              const float** runs) {
  int64_t column = first % w.wide.positions;
  int64_t row = first / w.wide.positions % w.high.positions;
  int64_t n = first / w.wide.positions / w.high.positions;
  for (int64_t pixel = 0; pixel < count; ++pixel) {
    for (int64_t i = 0; i < w.high.size; ++i) {
      const int64_t r = row * w.high.stride + w.high.first + i * w.high.step;
      const float* const line =
          image.data + ((n * image.height + r) * image.width) * image.channels;
      for (int64_t j = 0; j < w.wide.size; ++j) {
        const int64_t at = column * w.wide.stride + w.wide.first + j * w.wide.step;
        const bool inside = r >= 0 && r < image.height && at >= 0 && at < image.width;
        *runs++ = inside ? line + at * image.channels : nullptr;
      }
    }
    if (++column < w.wide.positions) continue;
    column = 0;
    if (++row < w.high.positions) continue;
    row = 0;
    ++n;
  }
}

size_t listBytes(int64_t window) {
  return static_cast<size_t>((kBlockPixels * window + 7) / 8 * 8) * sizeof(const float*);
}

// Rows of C are pixels.
MatrixProduct alongPixels(int64_t rows, int64_t window, int64_t channels, int64_t columns) {
  MatrixProduct p;
  p.m = rows, p.k = window * channels, p.n = columns;
  p.a_run = channels;
  p.a_stride = window;
  return p;
}

// Rows of C are the elements of the filter, of one input channel each; k are pixels.
MatrixProduct acrossPixels(const Convolution& c, int64_t pixels) {
  MatrixProduct p;
  p.m = c.taps(), p.k = pixels, p.n = c.out_channels;
  p.transpose_a = true;
  p.a_run = c.channels;
  p.a_stride = c.window.height.size * c.window.width.size;
  return p;
}

Walks forwardWalks(const Convolution& c) {
  return {Walk::forward(c.window.height, c.out_height), Walk::forward(c.window.width, c.out_width)};
}

// The workspace of one thread.
size_t roundedWorkspaceOfOne(const Processor& cpu, const Convolution& c) {
  const Processor one = cpu.rounding().alone();
  const int64_t window = c.window.height.size * c.window.width.size;
  const auto bytes = [&](const MatrixProduct& p) { return matrixProductWorkspaceBytes(one, p); };
  return listBytes(window) +
         std::max({bytes(alongPixels(kBlockPixels, window, c.channels, c.out_channels)),
                   bytes(alongPixels(kBlockPixels, window, c.out_channels, c.channels)),
                   bytes(acrossPixels(c, kBlockPixels))});
}

// In the backward pass, each input channel reads the filter's rows of output channels, for each
// element of the window.
size_t filterRunsBytes(const Convolution& c) {
  const int64_t runs = c.window.height.size * c.window.width.size * c.channels;
  return static_cast<size_t>((runs + 7) / 8 * 8) * sizeof(const float*);
}

// C = the windows of all pixels, times B; `p` is the product for one pixel.
void runAlongPixels(const Processor& cpu, const Image& image, const Walks& walks, int64_t pixels,
                    const MatrixProduct& p, const PerThread& workspaces, std::byte* workspace) {
  cpu.forRanges(pixels, p.k * p.n * kMultiplyAddWork, kGrain, Processor::kPartsEach,
                [&](int64_t begin, int64_t end, int thread) {
                  std::byte* const own = workspaces.of(workspace, thread);
                  const auto runs = reinterpret_cast<const float**>(own);
                  for (int64_t first = begin; first < end; first += kBlockPixels) {
                    MatrixProduct some = p;
                    some.m = std::min(kBlockPixels, end - first);
                    some.a_runs = runs;
                    some.c = p.c + first * p.n;
                    some.workspace = reinterpret_cast<float*>(own + listBytes(walks.windowSize()));
                    listRuns(image, walks, first, some.m, runs);
                    matrixProduct(cpu.rounding().alone(), some);
                  }
                });
}

}  // namespace

bool roundedConvolutionFits(ConvolutionPass pass, const Convolution& c) {
  if (c.groups != 1 || c.empty()) return false;
  if (c.pointwise()) return true;
  if (pass == ConvolutionPass::kBackpropInput)
    return c.out_channels % kRunGrain == 0 && c.window.height.stride == 1 &&
           c.window.width.stride == 1;
  return c.channels % kRunGrain == 0;
}

bool roundedConvolutionPays(ConvolutionPass, const Convolution& c) {
  constexpr int64_t kChannelsOfPoints = 64, kChannelsOfWindows = 128;
  const int64_t least = std::min(c.channels, c.out_channels);
  return least >= (c.pointwise() ? kChannelsOfPoints : kChannelsOfWindows);
}

size_t roundedConvolutionWorkspaceBytes(const Processor& cpu, const Convolution& c) {
  if (c.pointwise()) return convolutionWorkspaceBytes(cpu.rounding(), c);
  return filterRunsBytes(c) + PerThread(cpu, roundedWorkspaceOfOne(cpu, c)).bytes();
}

void roundedConvolve(const Processor& cpu, const Convolution& c, const float* x,
                     const float* filter, float* y, std::byte* workspace) {
  if (c.pointwise()) return convolve(cpu.rounding(), c, x, filter, y, workspace);
  DTF_CHECK(roundedConvolutionFits(ConvolutionPass::kForward, c));
  const Walks walks = forwardWalks(c);
  MatrixProduct p = alongPixels(1, walks.windowSize(), c.channels, c.out_channels);
  p.b = filter, p.c = y;
  runAlongPixels(cpu, {x, c.height, c.width, c.channels}, walks, c.pixels(), p,
                 PerThread(cpu, roundedWorkspaceOfOne(cpu, c)), workspace);
}

void roundedBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                          const float* dy, float* dx, std::byte* workspace) {
  if (c.pointwise()) return convolveBackpropInput(cpu.rounding(), c, filter, dy, dx, workspace);
  DTF_CHECK(roundedConvolutionFits(ConvolutionPass::kBackpropInput, c));
  const Walks walks = {Walk::back(c.window.height, c.height), Walk::back(c.window.width, c.width)};
  const int64_t window = walks.windowSize();
  const auto filter_runs = reinterpret_cast<const float**>(workspace);
  for (int64_t channel = 0; channel < c.channels; ++channel)
    for (int64_t i = 0; i < window; ++i)
      filter_runs[channel * window + i] = filter + (i * c.channels + channel) * c.out_channels;
  MatrixProduct p = alongPixels(1, window, c.out_channels, c.channels);
  p.transpose_b = true;
  p.b_runs = filter_runs, p.b_run = c.out_channels, p.b_stride = window;
  p.c = dx;
  runAlongPixels(cpu, {dy, c.out_height, c.out_width, c.out_channels}, walks,
                 c.batch * c.height * c.width, p, PerThread(cpu, roundedWorkspaceOfOne(cpu, c)),
                 workspace + filterRunsBytes(c));
}

// The pixels are summed in one order, so the work is split by the window's elements, each with its
// own rows of the gradient.
void roundedBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                           const float* dy, float* dfilter, std::byte* workspace) {
  if (c.pointwise()) return convolveBackpropFilter(cpu.rounding(), c, x, dy, dfilter, workspace);
  DTF_CHECK(roundedConvolutionFits(ConvolutionPass::kBackpropFilter, c));
  const Walks walks = forwardWalks(c);
  const PerThread workspaces(cpu, roundedWorkspaceOfOne(cpu, c));
  const int64_t work = c.channels * c.pixels() * c.out_channels * kMultiplyAddWork;
  const auto some = [&](int64_t begin, int64_t end, int thread) {
    std::byte* const own = workspaces.of(workspace, thread);
    const auto runs = reinterpret_cast<const float**>(own);
    for (int64_t first = 0; first < c.pixels(); first += kBlockPixels) {
      MatrixProduct p = acrossPixels(c, std::min(kBlockPixels, c.pixels() - first));
      p.m = (end - begin) * c.channels;
      p.a_runs = runs + begin;
      p.b = dy + first * c.out_channels;
      p.c = dfilter + begin * c.channels * c.out_channels;
      p.accumulate = first > 0;
      p.workspace = reinterpret_cast<float*>(own + listBytes(walks.windowSize()));
      listRuns({x, c.height, c.width, c.channels}, walks, first, p.k, runs);
      matrixProduct(cpu.rounding().alone(), p);
    }
  };
  cpu.forRanges(walks.windowSize(), work, 1, 1, some);
}

}  // namespace dtf::runtime
