#include "common/graph/builder.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::graph {

Builder::Scope::Scope(Builder& builder, std::string_view name, const DeviceName& device)
    : builder_(builder), name_scope_before_(builder.name_scope_), device_before_(builder.device_) {
  if (!name.empty()) builder_.name_scope_ += std::string(name) + "/";
  builder_.device_ = builder_.device_.mergedWith(device);
}

Builder::Scope::~Scope() {
  DTF_CHECK(builder_.name_scope_.starts_with(name_scope_before_));  // inner scopes end first
  builder_.name_scope_ = std::move(name_scope_before_);
  builder_.device_ = std::move(device_before_);
}

Builder::Scope Builder::nameScope(std::string_view name) {
  return {*this, name, {}};
}

Builder::Scope Builder::deviceScope(std::string_view device) {
  return {*this, {}, DeviceName::parse(device)};
}

NodeId Builder::node(std::string op, std::vector<Output> inputs, Attributes attributes,
                     std::string_view name, std::vector<NodeId> control_inputs) {
  DTF_CHECK(!op.empty());
  NodeDef def;
  def.name = name.empty() ? graph_.uniqueName(name_scope_ + op) : name_scope_ + std::string(name);
  def.op = std::move(op);
  def.inputs = std::move(inputs);
  def.attributes = std::move(attributes);
  def.control_inputs = std::move(control_inputs);
  def.device = device_.str();
  return graph_.addNode(std::move(def));
}

Output Builder::op(std::string op, std::vector<Output> inputs, Attributes attributes) {
  return {node(std::move(op), std::move(inputs), std::move(attributes)), 0};
}

Output Builder::placeholder(std::string_view name, DType dtype, Shape shape) {
  return {node("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name)};
}

Output Builder::variable(std::string_view name, Shape shape, std::string initializer) {
  return {node("Variable", {},
               {{"shape", std::move(shape)}, {"initializer", std::move(initializer)}}, name)};
}

Output Builder::constant(Shape shape, double value, DType dtype) {
  return op("Const", {}, {{"dtype", dtype}, {"shape", std::move(shape)}, {"value", value}});
}

Output Builder::add(Output a, Output b) {
  return op("Add", {a, b});
}
Output Builder::sub(Output a, Output b) {
  return op("Sub", {a, b});
}
Output Builder::mul(Output a, Output b) {
  return op("Mul", {a, b});
}
Output Builder::less(Output a, Output b) {
  return op("Less", {a, b});
}
Output Builder::equal(Output a, Output b) {
  return op("Equal", {a, b});
}
Output Builder::lessEqual(Output a, Output b) {
  return op("LessEqual", {a, b});
}
Output Builder::squaredDifference(Output a, Output b) {
  return op("SquaredDifference", {a, b});
}
Output Builder::biasAdd(Output x, Output bias) {
  return op("BiasAdd", {x, bias});
}
Output Builder::biasAddGrad(Output dy) {
  return op("BiasAddGrad", {dy});
}
Output Builder::mean(Output x) {
  return op("Mean", {x});
}
Output Builder::mulRows(Output dy, Output x) {
  return op("MulRows", {dy, x});
}
Output Builder::relu(Output x) {
  return op("Relu", {x});
}
Output Builder::reluGrad(Output dy, Output y) {
  return op("ReluGrad", {dy, y});
}
Output Builder::sigmoid(Output x) {
  return op("Sigmoid", {x});
}
Output Builder::sigmoidGrad(Output dy, Output y) {
  return op("SigmoidGrad", {dy, y});
}
Output Builder::tanh(Output x) {
  return op("Tanh", {x});
}
Output Builder::tanhGrad(Output dy, Output y) {
  return op("TanhGrad", {dy, y});
}
Output Builder::softmax(Output logits) {
  return op("Softmax", {logits});
}
Output Builder::softmaxGrad(Output dy, Output y) {
  return op("SoftmaxGrad", {dy, y});
}
Output Builder::sigmoidCrossEntropy(Output logits, Output targets) {
  return op("SigmoidCrossEntropyWithLogits", {logits, targets});
}
Output Builder::sigmoidCrossEntropyGrad(Output dy, Output logits, Output targets) {
  return op("SigmoidCrossEntropyGrad", {dy, logits, targets});
}
Output Builder::accuracy(Output logits, Output labels) {
  return op("Accuracy", {logits, labels});
}

Output Builder::reshape(Output x, Shape shape) {
  return op("Reshape", {x}, {{"shape", std::move(shape)}});
}

Output Builder::normalise(Output x, double scale) {
  return op("Normalise", {x}, {{"scale", scale}});
}

Output Builder::scale(Output x, double factor) {
  return op("Scale", {x}, {{"factor", factor}});
}

Output Builder::addN(std::vector<Output> terms) {
  return op("AddN", std::move(terms));
}

Output Builder::matMul(Output a, Output b, bool transpose_a, bool transpose_b) {
  return op("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Output Builder::meanGrad(Output dy, Shape shape) {
  return op("MeanGrad", {dy}, {{"shape", std::move(shape)}});
}

Builder::CrossEntropy Builder::sparseSoftmaxCrossEntropy(Output logits, Output labels) {
  const NodeId id = node("SparseSoftmaxCrossEntropyWithLogits", {logits, labels});
  return {{id, 0}, {id, 1}};
}

Output Builder::oneHot(Output labels, int64_t depth) {
  return op("OneHot", {labels}, {{"depth", depth}});
}

Output Builder::dropout(Output x, Output key, double rate, int64_t layer) {
  return op("Dropout", {x, key}, {{"rate", rate}, {"layer", layer}});
}

Output Builder::conv2D(Output x, Output filter, const Window& window, int64_t groups) {
  return op("Conv2D", {x, filter}, convolutionAttributes(window, groups));
}

Output Builder::conv2DBackpropInput(Shape x, Output filter, Output dy, const Window& window,
                                    int64_t groups) {
  Attributes attributes = convolutionAttributes(window, groups);
  attributes["shape"] = std::move(x);
  return op("Conv2DBackpropInput", {filter, dy}, std::move(attributes));
}

Output Builder::conv2DBackpropFilter(Output x, Shape filter, Output dy, const Window& window,
                                     int64_t groups) {
  Attributes attributes = convolutionAttributes(window, groups);
  attributes["shape"] = std::move(filter);
  return op("Conv2DBackpropFilter", {x, dy}, std::move(attributes));
}

Builder::MaxPool Builder::maxPool(Output x, const Window& window) {
  const NodeId id = node("MaxPool", {x}, poolingAttributes(window));
  return {{id, 0}, {id, 1}};
}

Output Builder::maxPoolGrad(Output dy, Output argmax, Shape x, const Window& window) {
  Attributes attributes = poolingAttributes(window);
  attributes["shape"] = std::move(x);
  return op("MaxPoolGrad", {dy, argmax}, std::move(attributes));
}

Output Builder::avgPool(Output x, const Window& window) {
  return op("AvgPool", {x}, poolingAttributes(window));
}

Output Builder::avgPoolGrad(Output dy, Shape x, const Window& window) {
  Attributes attributes = poolingAttributes(window);
  attributes["shape"] = std::move(x);
  return op("AvgPoolGrad", {dy}, std::move(attributes));
}

Output Builder::globalAvgPool(Output x) {
  const Shape& image = graph_.spec(x).shape;
  if (image.rank() != 4) return avgPool(x, {});  // reports the error
  const Shape means = {image.dim(0), image.dim(3)};
  Window window;
  window.height.size = image.dim(1);
  window.width.size = image.dim(2);
  return reshape(avgPool(x, window), means);
}

NodeId Builder::applyGradient(Output variable, Output gradient) {
  return node("ApplyGradient", {variable, gradient});
}

NodeId Builder::applySparseGradient(Output variable, Output gradient, Output indices) {
  return node("ApplySparseGradient", {variable, gradient, indices});
}

}  // namespace dtf::graph
