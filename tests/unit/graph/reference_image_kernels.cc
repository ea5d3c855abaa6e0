// The ops of standard_image_ops.cc, each as one walk over all places where a window meets its
// image.

#include "common/graph/window.h"
#include "tests/unit/graph/reference_kernels.h"

namespace dtf::graph::testing {
namespace {

// An image [batch, height, width, channels], and the index of each element.
struct Image {
  Shape shape;

  bool has(int64_t row, int64_t column) const {
    return row >= 0 && row < shape.dim(1) && column >= 0 && column < shape.dim(2);
  }
  size_t at(int64_t n, int64_t row, int64_t column, int64_t channel) const {
    return static_cast<size_t>(((n * shape.dim(1) + row) * shape.dim(2) + column) * shape.dim(3) +
                               channel);
  }
};

// The place in the image of element (i, j) of the window of output (row, column); it may be
// outside.
struct Meeting {
  int64_t n, out_row, out_column, i, j, row, column;
};

template <class F>
void forEachMeeting(const Window& window, const Image& x, const Shape& y, const F& f) {
  Meeting m = {};
  for (m.n = 0; m.n < y.dim(0); ++m.n) {
    for (m.out_row = 0; m.out_row < y.dim(1); ++m.out_row) {
      for (m.out_column = 0; m.out_column < y.dim(2); ++m.out_column) {
        for (m.i = 0; m.i < window.height.size; ++m.i) {
          for (m.j = 0; m.j < window.width.size; ++m.j) {
            const WindowAxis &h = window.height, &w = window.width;
            m.row = m.out_row * h.stride - h.before + m.i * h.dilation;
            m.column = m.out_column * w.stride - w.before + m.j * w.dilation;
            if (x.has(m.row, m.column)) f(m);
          }
        }
      }
    }
  }
}

// Calls f(index in x, index in the filter, index in y) for each product of the convolution.
template <class F>
void forEachProduct(const Node& node, const Shape& x_shape, const Shape& filter,
                    const Shape& y_shape, const F& f) {
  const Image x{x_shape}, y{y_shape};
  const int64_t per_group = filter.dim(2);
  const int64_t outputs = filter.dim(3) / node.attribute<int64_t>("groups");
  forEachMeeting(convolutionWindow(node.attributes, filter), x, y_shape, [&](const Meeting& m) {
    for (int64_t c = 0; c < per_group; ++c) {
      for (int64_t k = 0; k < filter.dim(3); ++k) {
        const int64_t tap = ((m.i * filter.dim(1) + m.j) * per_group + c) * filter.dim(3) + k;
        f(x.at(m.n, m.row, m.column, k / outputs * per_group + c), static_cast<size_t>(tap),
          y.at(m.n, m.out_row, m.out_column, k));
      }
    }
  });
}

Results conv2D(const Call& call) {
  Values y(call.outElements());
  forEachProduct(
      call.node, call.inShape(0), call.inShape(1), call.node.outputs[0].shape,
      [&](size_t x, size_t filter, size_t to) { y[to] += call.in(0)[x] * call.in(1)[filter]; });
  return {y};
}

Results conv2DBackpropInput(const Call& call) {
  Values dx(call.outElements());
  forEachProduct(
      call.node, call.node.outputs[0].shape, call.inShape(0), call.inShape(1),
      [&](size_t x, size_t filter, size_t y) { dx[x] += call.in(1)[y] * call.in(0)[filter]; });
  return {dx};
}

Results conv2DBackpropFilter(const Call& call) {
  Values df(call.outElements());
  forEachProduct(
      call.node, call.inShape(0), call.node.outputs[0].shape, call.inShape(1),
      [&](size_t x, size_t filter, size_t y) { df[filter] += call.in(0)[x] * call.in(1)[y]; });
  return {df};
}

Results maxPool(const Call& call) {
  const Window window = poolingWindow(call.node.attributes);
  const Shape& shape = call.node.outputs[0].shape;
  const Image x{call.inShape(0)}, y{shape};
  Values best(call.outElements()), argmax(call.outElements(), -1);
  forEachMeeting(window, x, shape, [&](const Meeting& m) {
    for (int64_t c = 0; c < shape.dim(3); ++c) {
      const size_t to = y.at(m.n, m.out_row, m.out_column, c);
      const double value = call.in(0)[x.at(m.n, m.row, m.column, c)];
      if (argmax[to] >= 0 && value <= best[to]) continue;
      best[to] = value;
      argmax[to] = static_cast<double>(m.i * window.width.size + m.j);
    }
  });
  return {best, argmax};
}

Results maxPoolGrad(const Call& call) {
  const Window window = poolingWindow(call.node.attributes);
  const Image x{call.node.outputs[0].shape}, y{call.inShape(0)};
  Values dx(call.outElements());
  forEachMeeting(window, x, y.shape, [&](const Meeting& m) {
    for (int64_t c = 0; c < y.shape.dim(3); ++c) {
      const size_t from = y.at(m.n, m.out_row, m.out_column, c);
      if (call.in(1)[from] != static_cast<double>(m.i * window.width.size + m.j)) continue;
      dx[x.at(m.n, m.row, m.column, c)] += call.in(0)[from];
    }
  });
  return {dx};
}

// Returns the number of elements in each mean.
Values countsOf(const Window& window, const Image& x, const Shape& y) {
  Values counts(static_cast<size_t>(y.elements()));
  forEachMeeting(window, x, y, [&](const Meeting& m) {
    for (int64_t c = 0; c < y.dim(3); ++c) ++counts[Image{y}.at(m.n, m.out_row, m.out_column, c)];
  });
  return counts;
}

Results avgPool(const Call& call) {
  const Window window = poolingWindow(call.node.attributes);
  const Shape& shape = call.node.outputs[0].shape;
  const Image x{call.inShape(0)};
  const Values counts = countsOf(window, x, shape);
  Values y(call.outElements());
  forEachMeeting(window, x, shape, [&](const Meeting& m) {
    for (int64_t c = 0; c < shape.dim(3); ++c) {
      const size_t to = Image{shape}.at(m.n, m.out_row, m.out_column, c);
      y[to] += call.in(0)[x.at(m.n, m.row, m.column, c)] / counts[to];
    }
  });
  return {y};
}

Results avgPoolGrad(const Call& call) {
  const Window window = poolingWindow(call.node.attributes);
  const Image x{call.node.outputs[0].shape}, y{call.inShape(0)};
  const Values counts = countsOf(window, x, y.shape);
  Values dx(call.outElements());
  forEachMeeting(window, x, y.shape, [&](const Meeting& m) {
    for (int64_t c = 0; c < y.shape.dim(3); ++c) {
      const size_t from = y.at(m.n, m.out_row, m.out_column, c);
      dx[x.at(m.n, m.row, m.column, c)] += call.in(0)[from] / counts[from];
    }
  });
  return {dx};
}

}  // namespace

void addImageReferences(ReferenceKernels& kernels) {
  kernels["Conv2D"] = conv2D;
  kernels["Conv2DBackpropInput"] = conv2DBackpropInput;
  kernels["Conv2DBackpropFilter"] = conv2DBackpropFilter;
  kernels["MaxPool"] = maxPool;
  kernels["MaxPoolGrad"] = maxPoolGrad;
  kernels["AvgPool"] = avgPool;
  kernels["AvgPoolGrad"] = avgPoolGrad;
}

}  // namespace dtf::graph::testing
