#include "common/graph/gradients.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/gradient_functions.h"

namespace dtf::graph {
namespace {

using Request = GradientRequest;

Gradients identityGradient(Builder&, const Request& r) {
  return {dyOf(r)};
}
Gradients noGradient(Builder&, const Request& r) {
  return Gradients(r.node.inputs.size());
}
Gradients addNGradient(Builder&, const Request& r) {
  return Gradients(r.node.inputs.size(), dyOf(r));
}

Gradients scaleGradient(Builder& b, const Request& r) {
  return {b.scale(dyOf(r), r.node.attribute<double>("factor"))};
}

Gradients reshapeGradient(Builder& b, const Request& r) {
  return {b.reshape(dyOf(r), b.graph().spec(in(r, 0)).shape)};
}

// With C = op(A) op(B): dop(A) = dC op(B)^T and dop(B) = op(A)^T dC. A transposed operand gets the
// transposed product, which swaps the factors and flips both flags.
Gradients matMulGradient(Builder& b, const Request& r) {
  const bool ta = r.node.attribute<bool>("transpose_a");
  const bool tb = r.node.attribute<bool>("transpose_b");
  const Output dy = dyOf(r);
  Gradients gradients(2);
  if (r.wanted[0]) {
    gradients[0] = ta ? b.matMul(in(r, 1), dy, tb, true) : b.matMul(dy, in(r, 1), false, !tb);
  }
  if (r.wanted[1]) {
    gradients[1] = tb ? b.matMul(dy, in(r, 0), true, ta) : b.matMul(in(r, 0), dy, !ta, false);
  }
  return gradients;
}

Gradients biasAddGradient(Builder& b, const Request& r) {
  Gradients gradients = {dyOf(r), std::nullopt};
  if (r.wanted[1]) gradients[1] = b.biasAddGrad(dyOf(r));
  return gradients;
}

Gradients reluGradient(Builder& b, const Request& r) {
  return {b.reluGrad(dyOf(r), yOf(r))};
}
Gradients sigmoidGradient(Builder& b, const Request& r) {
  return {b.sigmoidGrad(dyOf(r), yOf(r))};
}
Gradients tanhGradient(Builder& b, const Request& r) {
  return {b.tanhGrad(dyOf(r), yOf(r))};
}
Gradients softmaxGradient(Builder& b, const Request& r) {
  return {b.softmaxGrad(dyOf(r), yOf(r))};
}

// The same key draws the same mask, so the forward pass keeps nothing.
Gradients dropoutGradient(Builder& b, const Request& r) {
  return {b.dropout(dyOf(r), in(r, 1), r.node.attribute<double>("rate"),
                    r.node.attribute<int64_t>("layer")),
          std::nullopt};
}

Gradients sparseCrossEntropyGradient(Builder& b, const Request& r) {
  if (r.output_gradients[1]) {
    throw Error(ErrorCode::kBadConfig, "node '" + r.node.name + "' (" + r.node.op +
                                           "): its output 1, backprop, has no gradient");
  }
  return {b.mulRows(dyOf(r), {r.node.id, 1}), std::nullopt};
}

Gradients sigmoidCrossEntropyGradient(Builder& b, const Request& r) {
  Gradients gradients(2);
  if (r.wanted[0]) gradients[0] = b.sigmoidCrossEntropyGrad(dyOf(r), in(r, 0), in(r, 1));
  // The loss is linear in the target, with slope -logit.
  if (r.wanted[1]) gradients[1] = b.scale(b.mul(dyOf(r), in(r, 0)), -1);
  return gradients;
}

}  // namespace

Output dyOf(const GradientRequest& request) {
  DTF_CHECK_MSG(request.output_gradients.front().has_value(), request.node.name);
  return *request.output_gradients[0];
}

Output in(const GradientRequest& request, size_t index) {
  DTF_CHECK_MSG(index < request.node.inputs.size(), request.node.name);
  return request.node.inputs[index];
}

Output yOf(const GradientRequest& request) {
  return {request.node.id, 0};
}

void GradientTable::add(std::string op, GradientFunction gradient) {
  DTF_CHECK_MSG(gradient != nullptr, op);
  const bool added = functions_.emplace(op, std::move(gradient)).second;
  DTF_CHECK_MSG(added, "the gradient of " + op + " is defined twice");
}

const GradientFunction* GradientTable::find(std::string_view op) const {
  const auto found = functions_.find(op);
  return found == functions_.end() ? nullptr : &found->second;
}

const GradientTable& standardGradients() {
  static const GradientTable table = [] {
    GradientTable all;
    all.add("Identity", identityGradient);
    all.add("StopGradient", noGradient);
    all.add("ZerosLike", noGradient);
    all.add("Reshape", reshapeGradient);
    all.add("AddN", addNGradient);
    all.add("Scale", scaleGradient);
    all.add("MatMul", matMulGradient);
    all.add("BiasAdd", biasAddGradient);
    all.add("Relu", reluGradient);
    all.add("Sigmoid", sigmoidGradient);
    all.add("Tanh", tanhGradient);
    all.add("Softmax", softmaxGradient);
    all.add("Dropout", dropoutGradient);
    all.add("SparseSoftmaxCrossEntropyWithLogits", sparseCrossEntropyGradient);
    all.add("SigmoidCrossEntropyWithLogits", sigmoidCrossEntropyGradient);
    addMathGradients(all);
    addControlGradients(all);
    addImageGradients(all);
    addLayerGradients(all);
    return all;
  }();
  return table;
}

}  // namespace dtf::graph
