#pragma once

// The geometry of convolutions and pooling, from an op's attributes: see common/graph/window.h.
// Images are [batch, height, width, channels].

#include <cstdint>

#include "gpu/operation.h"

namespace dtf::gpu {

// Along the height or the width. Value type.
struct Axis {
  int64_t size = 1, stride = 1, dilation = 1, before = 0, after = 0;
};
struct Window {
  Axis height, width;
};

// Returns a convolution's window, with the size of its filter, [height, width, channels / groups,
// out channels]. Inline: used by nvcc's sources and the host's.
inline Window windowOf(const Operation& o, int64_t height, int64_t width) {
  Window w;
  w.height = {height, o.integer("stride_height", 1), o.integer("dilation_height", 1),
              o.integer("padding_top"), o.integer("padding_bottom")};
  w.width = {width, o.integer("stride_width", 1), o.integer("dilation_width", 1),
             o.integer("padding_left"), o.integer("padding_right")};
  return w;
}
inline Window poolingWindowOf(const Operation& o) {
  return windowOf(o, o.integer("window_height", 1), o.integer("window_width", 1));
}

}  // namespace dtf::gpu
