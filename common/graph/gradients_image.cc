// The gradients of standard_image_ops.cc.

#include "common/graph/gradient_functions.h"
#include "common/graph/window.h"

namespace dtf::graph {
namespace {

// By value: the builder adds nodes, which moves the graph's own.
Shape shapeOf(Builder& b, Output tensor) {
  return b.graph().spec(tensor).shape;
}

Gradients convolutionGradient(Builder& b, const GradientRequest& r) {
  const Output x = in(r, 0), filter = in(r, 1), dy = dyOf(r);
  const Window window = convolutionWindow(r.node.attributes, shapeOf(b, filter));
  const auto groups = r.node.attribute<int64_t>("groups");
  Gradients gradients(2);
  if (r.wanted[0]) {
    gradients[0] = b.conv2DBackpropInput(shapeOf(b, x), filter, dy, window, groups);
  }
  if (r.wanted[1]) {
    gradients[1] = b.conv2DBackpropFilter(x, shapeOf(b, filter), dy, window, groups);
  }
  return gradients;
}

Gradients maxPoolGradient(Builder& b, const GradientRequest& r) {
  return {b.maxPoolGrad(dyOf(r), {r.node.id, 1}, shapeOf(b, in(r, 0)),
                        poolingWindow(r.node.attributes))};
}

Gradients avgPoolGradient(Builder& b, const GradientRequest& r) {
  return {b.avgPoolGrad(dyOf(r), shapeOf(b, in(r, 0)), poolingWindow(r.node.attributes))};
}

}  // namespace

void addImageGradients(GradientTable& table) {
  table.add("Conv2D", convolutionGradient);
  table.add("MaxPool", maxPoolGradient);
  table.add("AvgPool", avgPoolGradient);
}

}  // namespace dtf::graph
