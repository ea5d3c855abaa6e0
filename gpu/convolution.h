#pragma once

// Properties shared by the three ops of a convolution. Images are [batch, height, width, channels],
// a filter is [height, width, channels / groups, out channels].

#include <cstdint>

#include "gpu/operation.h"
#include "gpu/window.h"

namespace dtf::gpu {

enum class Pass : uint8_t { kForward, kBackpropInput, kBackpropFilter };

// Value type.
struct Convolution {
  // The operation's tensors, by pass: (x, filter) -> y, (filter, dy) -> dx, (x, dy) -> dfilter.
  Convolution(const Operation& o, Pass pass)
      : Convolution(o, pass == Pass::kBackpropInput ? o.outputs[0] : o.inputs[0],
                    pass == Pass::kForward         ? o.inputs[1]
                    : pass == Pass::kBackpropInput ? o.inputs[0]
                                                   : o.outputs[0],
                    pass == Pass::kForward ? o.outputs[0] : o.inputs[1]) {}

  Type type;  // of images; a filter and its gradient are float32
  int64_t batch, height, width, channels;
  int64_t out_height, out_width, out_channels;
  int64_t groups, group_channels;
  Window window;

  int64_t taps() const { return window.height.size * window.width.size * group_channels; }
  int64_t filterElements() const { return taps() * out_channels; }
  int64_t imageElements() const { return batch * height * width * channels; }
  int64_t outElements() const { return batch * out_height * out_width * out_channels; }
  bool empty() const { return outElements() == 0 || taps() == 0; }

 private:
  Convolution(const Operation& o, const TensorSpec& x, const TensorSpec& filter,
              const TensorSpec& y)
      : type(x.type),
        batch(x.dims[0]),
        height(x.dims[1]),
        width(x.dims[2]),
        channels(x.dims[3]),
        out_height(y.dims[1]),
        out_width(y.dims[2]),
        out_channels(y.dims[3]),
        groups(o.integer("groups", 1)),
        group_channels(filter.dims[2]),
        window(windowOf(o, filter.dims[0], filter.dims[1])) {}
};

}  // namespace dtf::gpu
