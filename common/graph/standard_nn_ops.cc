// Neural networks: activations, losses, metrics. All is float32 unless said. `labels` are uint8,
// int32 or int64 of shape [B], each in [0, C); one out of range is bad data, which the kernel
// reports.
//
//   op            inputs             outputs
//   Relu          x                  max(x, 0)
//   ReluGrad      dy, y = Relu(x)    dy where y > 0, else 0
//   Sigmoid       x                  1 / (1 + exp(-x))
//   SigmoidGrad   dy, y = Sigmoid(x) dy * y * (1 - y)
//   Tanh          x                  tanh(x)
//   TanhGrad      dy, y = Tanh(x)    dy * (1 - y^2)
//   Softmax       logits [B,C]       each row: exp(x - max) / sum
//   SoftmaxGrad   dy, y = Softmax(x) each row: (dy - sum(dy * y)) * y
//   SparseSoftmaxCrossEntropyWithLogits
//                 logits [B,C],      0, loss [B]: log(sum(exp(x))) - x[label]
//                 labels [B]         1, backprop [B,C]: softmax - one hot, the gradient of loss
//   SigmoidCrossEntropyWithLogits
//                 logits, targets:   max(x, 0) - x * z + log(1 + exp(-|x|)) by element, where x is
//                 same               the logit and z the target
//   SigmoidCrossEntropyGrad
//                 dy, logits,        dy * (sigmoid(logits) - targets)
//                 targets: same
//   OneHot        labels [B]         [B,depth]: 1 at the label, else 0; attribute depth int >= 1
//   Accuracy      logits [B,C],      scalar: the mean of (argmax of the row == label); of equal
//                 labels [B]         logits the lowest index counts

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

Specs inferSoftmax(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantRank(inputs[0], 2, "logits");
  return elementwise(inputs, attributes);
}

void wantLogitsAndLabels(std::span<const TensorSpec> inputs) {
  wantFloat(inputs[0], "logits");
  wantRank(inputs[0], 2, "logits");
  wantLabels(inputs[1], "labels");
  wantSameDim(inputs[0], 0, "logits", inputs[1], 0, "labels");
  if (inputs[0].shape.dim(1) == 0) {
    throw Error(ErrorCode::kBadConfig, "logits " + specText(inputs[0]) + " have no classes");
  }
}

Specs inferSparseCrossEntropy(std::span<const TensorSpec> inputs, const Attributes&) {
  wantLogitsAndLabels(inputs);
  return {floats({inputs[0].shape.dim(0)}), inputs[0]};
}

Specs inferAccuracy(std::span<const TensorSpec> inputs, const Attributes&) {
  wantLogitsAndLabels(inputs);
  if (inputs[0].shape.dim(0) == 0) {
    throw Error(ErrorCode::kBadConfig, "logits " + specText(inputs[0]) + " have no rows");
  }
  return {floats(Shape())};
}

Specs inferOneHot(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantLabels(inputs[0], "labels");
  const int64_t depth = get<int64_t>(attributes, "depth");
  if (depth < 1) {
    throw Error(ErrorCode::kBadConfig, "depth must be at least 1, it is " + std::to_string(depth));
  }
  return {floats({inputs[0].shape.dim(0), depth})};
}

}  // namespace

void addNnOps(OpCatalog& catalog) {
  catalog.add({"Relu", 1, {}, elementwise});
  catalog.add({"ReluGrad", 2, {}, elementwise});
  catalog.add({"Sigmoid", 1, {}, elementwise});
  catalog.add({"SigmoidGrad", 2, {}, elementwise});
  catalog.add({"Tanh", 1, {}, elementwise});
  catalog.add({"TanhGrad", 2, {}, elementwise});
  catalog.add({"Softmax", 1, {}, inferSoftmax});
  catalog.add({"SoftmaxGrad", 2, {}, inferSoftmax});
  catalog.add({"SparseSoftmaxCrossEntropyWithLogits", 2, {}, inferSparseCrossEntropy});
  catalog.add({"SigmoidCrossEntropyWithLogits", 2, {}, elementwise});
  catalog.add({"SigmoidCrossEntropyGrad", 3, {}, elementwise});
  catalog.add({"OneHot", 1, {{"depth", Type::kInt}}, inferOneHot});
  catalog.add({"Accuracy", 2, {}, inferAccuracy});
}

}  // namespace dtf::graph
