// Images: convolutions and pooling. All tensors are float32 unless noted; images are [batch,
// height, width, channels] and filters [height, width, input channels / groups, output channels].
// The attributes of window.h give the windows' positions, all int: strides and dilations are at
// least 1, paddings at least 0.
//
//   op                    inputs            outputs
//   Conv2D                x, filter         [B, positions, positions, output channels]: the sum,
//                                           over the window and the channels of the group, of x
//                                           times the filter (a cross-correlation); the padding
//                                           reads as 0. Attribute groups: divides both
//                                           numbers of channels; group g reads the g-th part of the
//                                           input channels and makes the g-th part of the output's
//   Conv2DBackpropInput   filter, dy        dx; attribute shape: x's
//   Conv2DBackpropFilter  x, dy             dfilter; attribute shape: the filter's
//   MaxPool               x                 0, y: the largest element of each window and channel
//                                           1, its number in the window, row by row, the first of
//                                           equals; uint8, or int32 where the window has more than
//                                           255 elements. The padding never counts
//   MaxPoolGrad           dy, argmax        dx: each dy where its maximum was, added up; attribute
//                                           shape: x's
//   AvgPool               x                 y: the mean over the elements of each window that are
//                                           no padding
//   AvgPoolGrad           dy                dx; attribute shape: x's
//
// The window of a pooling is larger than its padding, and its image is not empty, so it always
// contains a pixel. Its elements are numbered with 32 bits.

#include <limits>

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"
#include "common/graph/window.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

// Enough in practice, and products of a few of these fit int64.
constexpr int64_t kWindowNumberMax = int64_t{1} << 20;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

void wantNumber(int64_t value, int64_t least, const std::string& name) {
  if (value >= least && value <= kWindowNumberMax) return;
  refuse(name + " must be from " + std::to_string(least) + " to " +
         std::to_string(kWindowNumberMax) + ", it is " + std::to_string(value));
}

void wantAxis(const WindowAxis& axis, const std::string& name) {
  wantNumber(axis.size, 1, "the window's " + name);
  wantNumber(axis.stride, 1, "stride_" + name);
  wantNumber(axis.dilation, 1, "dilation_" + name);
  wantNumber(axis.before, 0, name == "height" ? "padding_top" : "padding_left");
  wantNumber(axis.after, 0, name == "height" ? "padding_bottom" : "padding_right");
}

int64_t positionsOf(const WindowAxis& axis, int64_t length, const std::string& name) {
  const int64_t positions = axis.positions(length);
  if (positions > 0) return positions;
  refuse("the window's " + name + " of " + std::to_string(axis.extent()) +
         (axis.dilation > 1 ? " (dilated)" : "") + " is larger than the image's of " +
         std::to_string(length) + " with its padding of " +
         std::to_string(axis.before + axis.after));
}

struct Positions {
  int64_t height, width;
};
Positions positionsOf(const Window& window, const Shape& image) {
  wantAxis(window.height, "height");
  wantAxis(window.width, "width");
  return {positionsOf(window.height, image.dim(1), "height"),
          positionsOf(window.width, image.dim(2), "width")};
}

void wantImage(const TensorSpec& spec, const char* name) {
  wantFloat(spec, name);
  if (spec.shape.rank() != 4) {
    refuse(std::string(name) + " " + specText(spec) +
           " must have 4 dimensions: batch, height, width, channels");
  }
}

Shape convolved(const TensorSpec& x, const TensorSpec& filter, const Attributes& attributes) {
  wantImage(x, "x");
  wantFloat(filter, "filter");
  if (filter.shape.rank() != 4) {
    refuse("filter " + specText(filter) +
           " must have 4 dimensions: height, width, input channels / groups, output channels");
  }
  const int64_t groups = get<int64_t>(attributes, "groups");
  wantNumber(groups, 1, "groups");
  const int64_t channels = x.shape.dim(3);
  if (channels % groups != 0 || filter.shape.dim(2) != channels / groups ||
      filter.shape.dim(3) % groups != 0) {
    refuse("x " + specText(x) + " and filter " + specText(filter) + " don't fit: with " +
           std::to_string(groups) + " group(s) the filter must read " + std::to_string(channels) +
           " / " + std::to_string(groups) + " channels, and its output channels be a multiple of " +
           std::to_string(groups));
  }
  const Positions at = positionsOf(convolutionWindow(attributes, filter.shape), x.shape);
  return {x.shape.dim(0), at.height, at.width, filter.shape.dim(3)};
}

void wantGradientOf(const TensorSpec& dy, const Shape& y) {
  if (dy == floats(y)) return;
  refuse("dy " + specText(dy) + " must be " + specText(floats(y)) + " as the output is");
}

Specs inferConv2D(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  return {floats(convolved(inputs[0], inputs[1], attributes))};
}

Specs inferBackpropInput(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec x = declaredFloat(inputs, attributes)[0];
  wantGradientOf(inputs[1], convolved(x, inputs[0], attributes));
  return {x};
}

Specs inferBackpropFilter(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec filter = declaredFloat(inputs, attributes)[0];
  wantGradientOf(inputs[1], convolved(inputs[0], filter, attributes));
  return {filter};
}

void wantReal(const WindowAxis& axis, const std::string& name) {
  if (axis.before < axis.size && axis.after < axis.size) return;
  refuse("the padding of a pooling must be smaller than its window: the window's " + name + " is " +
         std::to_string(axis.size) + ", the padding " + std::to_string(axis.before) + " and " +
         std::to_string(axis.after));
}

Shape pooled(const TensorSpec& x, const Attributes& attributes) {
  wantImage(x, "x");
  const Window window = poolingWindow(attributes);
  const Positions at = positionsOf(window, x.shape);
  if (x.shape.dim(1) == 0 || x.shape.dim(2) == 0) {
    refuse("x " + specText(x) + " has no pixels to pool");
  }
  if (window.height.size * window.width.size > std::numeric_limits<int32_t>::max()) {
    refuse("the window of a pooling has " + std::to_string(window.height.size * window.width.size) +
           " elements; there must be fewer than 2^31");
  }
  wantReal(window.height, "height");
  wantReal(window.width, "width");
  return {x.shape.dim(0), at.height, at.width, x.shape.dim(3)};
}

TensorSpec argmaxOf(const Shape& y, const Attributes& attributes) {
  const Window window = poolingWindow(attributes);
  return {window.height.size * window.width.size <= 255 ? DType::kUInt8 : DType::kInt32, y};
}

Specs inferMaxPool(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Shape y = pooled(inputs[0], attributes);
  return {floats(y), argmaxOf(y, attributes)};
}

Specs inferMaxPoolGrad(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec x = declaredFloat(inputs, attributes)[0];
  const Shape y = pooled(x, attributes);
  wantGradientOf(inputs[0], y);
  wantSame(inputs[1], "argmax", argmaxOf(y, attributes), "the second output of MaxPool");
  return {x};
}

Specs inferAvgPool(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  return {floats(pooled(inputs[0], attributes))};
}

Specs inferAvgPoolGrad(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec x = declaredFloat(inputs, attributes)[0];
  wantGradientOf(inputs[0], pooled(x, attributes));
  return {x};
}

std::vector<AttributeDef> ints(std::initializer_list<const char*> names) {
  std::vector<AttributeDef> defs;
  for (const char* name : names) defs.push_back({name, Type::kInt});
  return defs;
}

std::vector<AttributeDef> with(std::vector<AttributeDef> defs, AttributeDef another) {
  defs.push_back(std::move(another));
  return defs;
}

}  // namespace

void addImageOps(OpCatalog& catalog) {
  const AttributeDef shape{"shape", Type::kShape};
  const auto convolution =
      ints({"stride_height", "stride_width", "dilation_height", "dilation_width", "padding_top",
            "padding_bottom", "padding_left", "padding_right", "groups"});
  catalog.add({"Conv2D", 2, convolution, inferConv2D});
  catalog.add({"Conv2DBackpropInput", 2, with(convolution, shape), inferBackpropInput});
  catalog.add({"Conv2DBackpropFilter", 2, with(convolution, shape), inferBackpropFilter});
  const auto pooling = ints({"window_height", "window_width", "stride_height", "stride_width",
                             "padding_top", "padding_bottom", "padding_left", "padding_right"});
  catalog.add({"MaxPool", 1, pooling, inferMaxPool});
  catalog.add({"MaxPoolGrad", 2, with(pooling, shape), inferMaxPoolGrad});
  catalog.add({"AvgPool", 1, pooling, inferAvgPool});
  catalog.add({"AvgPoolGrad", 1, with(pooling, shape), inferAvgPoolGrad});
}

}  // namespace dtf::graph
