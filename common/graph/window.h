#pragma once

// The position of a window (the filter of a convolution, the cells of a pooling) over an image
// [batch, height, width, channels]: the geometry shared by shape functions, layers and kernels.

#include <cstdint>

#include "common/graph/graph.h"

namespace dtf::graph {

// One axis of a window, height or width. Value type. The first position begins `before` elements
// ahead of the image, and no position ends more than `after` elements behind it.
struct WindowAxis {
  int64_t size = 1;      // elements of the window
  int64_t stride = 1;    // distance of two positions
  int64_t dilation = 1;  // distance of two elements of the window
  int64_t before = 0, after = 0;

  int64_t extent() const { return (size - 1) * dilation + 1; }
  // Returns the number of positions over `length` elements; 0 if it doesn't fit once.
  int64_t positions(int64_t length) const;
  bool operator==(const WindowAxis&) const = default;
};

struct Window {
  WindowAxis height, width;
  bool operator==(const Window&) const = default;
};

// Adds the padding of TensorFlow's 'SAME': ceil(length / stride) positions; if the padding is odd,
// the larger part comes behind. TensorFlow's 'VALID' means no padding.
WindowAxis paddedSame(WindowAxis axis, int64_t length);
Window paddedSame(Window window, int64_t height, int64_t width);

// Converts to attributes of an op and back: stride_height, dilation_height, padding_top,
// padding_bottom, stride_width, dilation_width, padding_left, padding_right. A convolution takes
// the window's size from its filter; pooling has window_height and window_width, and no dilation.
Attributes convolutionAttributes(const Window& window, int64_t groups);
Window convolutionWindow(const Attributes& attributes, const Shape& filter);
Attributes poolingAttributes(const Window& window);
Window poolingWindow(const Attributes& attributes);

}  // namespace dtf::graph
