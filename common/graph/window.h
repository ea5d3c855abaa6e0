#pragma once

// Where a window (the filter of a convolution, the cells of a pooling) stands over an image
// [batch, height, width, channels]: the geometry that shape functions, layers and kernels share.

#include <cstdint>

#include "common/graph/graph.h"

namespace dtf::graph {

// Along the height or the width. Value type. The window's first position begins `before` elements
// ahead of the image, and none ends later than `after` elements behind it.
struct WindowAxis {
  int64_t size = 1;      // elements that the window reads
  int64_t stride = 1;    // from one position to the next
  int64_t dilation = 1;  // from one element of the window to the next
  int64_t before = 0, after = 0;

  int64_t extent() const { return (size - 1) * dilation + 1; }
  // How many positions it has over `length` elements; 0 when it doesn't fit once.
  int64_t positions(int64_t length) const;
  bool operator==(const WindowAxis&) const = default;
};

struct Window {
  WindowAxis height, width;
  bool operator==(const Window&) const = default;
};

// With the padding of TensorFlow's 'SAME': ceil(length / stride) positions, and of an odd number of
// padded elements the larger part behind. TensorFlow's 'VALID' is no padding at all.
WindowAxis paddedSame(WindowAxis axis, int64_t length);
Window paddedSame(Window window, int64_t height, int64_t width);

// As attributes of an op, and back: stride_height, dilation_height, padding_top, padding_bottom,
// stride_width, dilation_width, padding_left, padding_right. The size of a convolution's window is
// its filter's; pooling has window_height and window_width, and no dilation.
Attributes convolutionAttributes(const Window& window, int64_t groups);
Window convolutionWindow(const Attributes& attributes, const Shape& filter);
Attributes poolingAttributes(const Window& window);
Window poolingWindow(const Attributes& attributes);

}  // namespace dtf::graph
