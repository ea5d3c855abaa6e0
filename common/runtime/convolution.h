#pragma once

// Convolutions of any shape as products of matrices. The image elements under the windows of some
// output pixels are gathered as rows of a matrix ("im2col"), block by block in a workspace that
// stays in the caches. A 1x1 window over every pixel needs no gathering: the image is the matrix.

#include <cstddef>
#include <cstdint>

#include "common/graph/window.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {

// One convolution of images [batch, height, width, channels] to [batch, out_height, out_width,
// out_channels] with a filter [window, channels / groups, out_channels]. Value type.
struct Convolution {
  int64_t batch = 0, height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t groups = 1;
  graph::Window window;

  // Derives the sizes from matching shapes of an op's tensors (graph/standard_image_ops.cc).
  static Convolution of(const Shape& x, const Shape& filter, const Shape& y,
                        const graph::Attributes& attributes);

  int64_t imageElements() const { return batch * height * width * channels; }
  int64_t pixels() const { return batch * out_height * out_width; }
  int64_t outElements() const { return pixels() * out_channels; }
  int64_t groupChannels() const { return channels / groups; }
  int64_t groupOutChannels() const { return out_channels / groups; }
  // Returns the number of products summed in one output element.
  int64_t taps() const { return window.height.size * window.width.size * groupChannels(); }
  int64_t filterElements() const { return taps() * out_channels; }
  bool empty() const { return outElements() == 0 || taps() == 0; }
  bool pointwise() const;
};

size_t convolutionWorkspaceBytes(const Processor& cpu, const Convolution& convolution);

// All three overwrite their result. `workspace` has convolutionWorkspaceBytes(), aligned to 64.
// Thread-safe for calls that share only inputs, and no pool.
void convolve(const Processor& cpu, const Convolution& c, const float* x, const float* filter,
              float* y, std::byte* workspace);
void convolveBackpropInput(const Processor& cpu, const Convolution& c, const float* filter,
                           const float* dy, float* dx, std::byte* workspace);
void convolveBackpropFilter(const Processor& cpu, const Convolution& c, const float* x,
                            const float* dy, float* dfilter, std::byte* workspace);

}  // namespace dtf::runtime
