// Neural networks: activations, losses, metrics. All tensors are float32 unless noted. `labels` are
// uint8, int32 or int64 of shape [B], each in [0, C); a label out of range is bad data, which the
// kernel reports.
//
//   op            inputs             outputs
//   Relu          x                  max(x, 0)
//   ReluGrad      dy, y = Relu(x)    dy where y > 0, else 0
//   Sigmoid       x                  1 / (1 + exp(-x))
//   SigmoidGrad   dy, y = Sigmoid(x) dy * y * (1 - y)
//   Tanh          x                  tanh(x)
//   TanhGrad      dy, y = Tanh(x)    dy * (1 - y^2)
//   Relu6         x                  min(max(x, 0), 6)
//   Relu6Grad     dy, y = Relu6(x)   dy where 0 < y < 6, else 0
//   LeakyRelu     x                  x where x > 0, else alpha * x; attribute alpha double
//   LeakyReluGrad dy, x              dy where x > 0, else alpha * dy; attribute alpha double
//   Elu           x                  x where x > 0, else exp(x) - 1
//   EluGrad       dy, y = Elu(x)     dy where y > 0, else dy * (y + 1)
//   Gelu          x                  x * (1 + erf(x / sqrt(2))) / 2; with the attribute approximate
//                                    bool (default false): x * (1 + tanh(u)) / 2 where
//                                    u = sqrt(2 / pi) * (x + 0.044715 * x^3)
//   GeluGrad      dy, x              dy times its derivative; attribute approximate
//   Silu          x                  x * sigmoid(x)
//   SiluGrad      dy, x              dy times its derivative
//   Softplus      x                  log(1 + exp(x))
//   SoftplusGrad  dy, x              dy * sigmoid(x)
//   Softmax       logits [..,C]      each row: exp(x - max) / sum
//   SoftmaxGrad   dy, y = Softmax(x) each row: (dy - sum(dy * y)) * y
//   SoftmaxCrossEntropyWithLogits
//                 logits [B,C],      0, loss [B]: the sum over the row of
//                 targets: same      z * (log(sum(exp(x))) - x)
//                                    1, backprop [B,C]: softmax - z, the gradient of the loss where
//                                    the targets z of each row add up to 1
//   Huber         x, a difference    x^2 / 2 where |x| <= delta, else delta * (|x| - delta / 2);
//                                    attribute delta double > 0
//   HuberGrad     dy, x              dy * x, where |x| > delta dy * delta * sign(x)
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
//   Dropout       x, key int64 [2]   x / (1 - rate) where the element is kept, else 0; attributes
//                                    rate double in [0, 1), layer int in [0, 2^24)
//   Accuracy      logits [B,C],      scalar: the mean of (argmax of the row == label); of equal
//                 labels [B]         logits the lowest index counts
//
// The mask of Dropout is a pure function of its key, [seed, batch], and its layer: it is the same
// on every device, and Dropout is its own gradient (dx = Dropout(dy, key)). Element i is kept if
// its 32-bit number is at least floor(rate * 2^32). That is number i % 64 / 16 of the Philox block
// i / 64 * 16 + i % 16, so that devices may compute 16 blocks at once and store the results in
// order. A block is philox({block, batch low, batch high, 0x11000000 | layer}, {seed low, seed
// high}) of base/random.h; 0x11 is the stream's use, see base/random_streams.h. Blocks are counted
// in 32 bits, so x has at most 2^34 elements.

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

constexpr int64_t kDropoutLayersMax = int64_t{1} << 24;
constexpr int64_t kDropoutElementsMax = int64_t{1} << 34;

void wantClasses(const TensorSpec& logits) {
  if (logits.shape.dim(1) == 0) {
    throw Error(ErrorCode::kBadConfig, "logits " + specText(logits) + " have no classes");
  }
}

Specs inferSoftmax(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantRankAtLeast(inputs[0], 1, "logits");
  return elementwise(inputs, attributes);
}

Specs inferCrossEntropy(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "logits");
  wantRank(inputs[0], 2, "logits");
  wantSame(inputs[0], "logits", inputs[1], "targets");
  wantClasses(inputs[0]);
  return {floats({inputs[0].shape.dim(0)}), inputs[0]};
}

Specs inferHuber(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const double delta = get<double>(attributes, "delta");
  if (!(delta > 0)) {
    throw Error(ErrorCode::kBadConfig, "delta must be above 0, it is " + std::to_string(delta));
  }
  return elementwise(inputs, attributes);
}

void wantLogitsAndLabels(std::span<const TensorSpec> inputs) {
  wantFloat(inputs[0], "logits");
  wantRank(inputs[0], 2, "logits");
  wantLabels(inputs[1], "labels");
  wantSameDim(inputs[0], 0, "logits", inputs[1], 0, "labels");
  wantClasses(inputs[0]);
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

Specs inferDropout(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantFloat(inputs[0], "x");
  if (inputs[1] != TensorSpec{DType::kInt64, Shape{2}}) {
    throw Error(ErrorCode::kBadConfig, "key " + specText(inputs[1]) + " must be int64[2]");
  }
  const double rate = get<double>(attributes, "rate");
  const int64_t layer = get<int64_t>(attributes, "layer");
  if (!(rate >= 0 && rate < 1)) {
    throw Error(ErrorCode::kBadConfig, "rate must be in [0, 1), it is " + std::to_string(rate));
  }
  if (layer < 0 || layer >= kDropoutLayersMax) {
    throw Error(ErrorCode::kBadConfig, "layer must be from 0 to " +
                                           std::to_string(kDropoutLayersMax - 1) + ", it is " +
                                           std::to_string(layer));
  }
  if (inputs[0].shape.elements() > kDropoutElementsMax) {
    throw Error(ErrorCode::kBadConfig, "x " + specText(inputs[0]) + " has more than " +
                                           std::to_string(kDropoutElementsMax) +
                                           " elements: choose a smaller batch_size");
  }
  return {inputs[0]};
}

}  // namespace

void addNnOps(OpCatalog& catalog) {
  catalog.add({"Relu", 1, {}, elementwise});
  catalog.add({"ReluGrad", 2, {}, elementwise});
  catalog.add({"Sigmoid", 1, {}, elementwise});
  catalog.add({"SigmoidGrad", 2, {}, elementwise});
  catalog.add({"Tanh", 1, {}, elementwise});
  catalog.add({"TanhGrad", 2, {}, elementwise});
  const AttributeDef alpha{"alpha", Type::kDouble}, delta{"delta", Type::kDouble};
  const AttributeDef approximate{"approximate", Type::kBool, false};
  catalog.add({"Relu6", 1, {}, elementwise});
  catalog.add({"Relu6Grad", 2, {}, elementwise});
  catalog.add({"LeakyRelu", 1, {alpha}, elementwise});
  catalog.add({"LeakyReluGrad", 2, {alpha}, elementwise});
  catalog.add({"Elu", 1, {}, elementwise});
  catalog.add({"EluGrad", 2, {}, elementwise});
  catalog.add({"Gelu", 1, {approximate}, elementwise});
  catalog.add({"GeluGrad", 2, {approximate}, elementwise});
  catalog.add({"Silu", 1, {}, elementwise});
  catalog.add({"SiluGrad", 2, {}, elementwise});
  catalog.add({"Softplus", 1, {}, elementwise});
  catalog.add({"SoftplusGrad", 2, {}, elementwise});
  catalog.add({"SoftmaxCrossEntropyWithLogits", 2, {}, inferCrossEntropy});
  catalog.add({"Huber", 1, {delta}, inferHuber});
  catalog.add({"HuberGrad", 2, {delta}, inferHuber});
  catalog.add({"Softmax", 1, {}, inferSoftmax});
  catalog.add({"SoftmaxGrad", 2, {}, inferSoftmax});
  catalog.add({"SparseSoftmaxCrossEntropyWithLogits", 2, {}, inferSparseCrossEntropy});
  catalog.add({"SigmoidCrossEntropyWithLogits", 2, {}, elementwise});
  catalog.add({"SigmoidCrossEntropyGrad", 3, {}, elementwise});
  catalog.add({"OneHot", 1, {{"depth", Type::kInt}}, inferOneHot});
  catalog.add({"Dropout", 2, {{"rate", Type::kDouble}, {"layer", Type::kInt}}, inferDropout});
  catalog.add({"Accuracy", 2, {}, inferAccuracy});
}

}  // namespace dtf::graph
