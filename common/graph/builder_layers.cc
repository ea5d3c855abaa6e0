// The builder's functions for activations, losses, normalisation and parts of tensors.

#include <utility>

#include "common/graph/builder.h"

namespace dtf::graph {

Output Builder::abs(Output x) {
  return op("Abs", {x});
}
Output Builder::absGrad(Output dy, Output x) {
  return op("AbsGrad", {dy, x});
}
Output Builder::relu6(Output x) {
  return op("Relu6", {x});
}
Output Builder::relu6Grad(Output dy, Output y) {
  return op("Relu6Grad", {dy, y});
}
Output Builder::leakyRelu(Output x, double alpha) {
  return op("LeakyRelu", {x}, {{"alpha", alpha}});
}
Output Builder::leakyReluGrad(Output dy, Output x, double alpha) {
  return op("LeakyReluGrad", {dy, x}, {{"alpha", alpha}});
}
Output Builder::elu(Output x) {
  return op("Elu", {x});
}
Output Builder::eluGrad(Output dy, Output y) {
  return op("EluGrad", {dy, y});
}
Output Builder::gelu(Output x, bool approximate) {
  return op("Gelu", {x}, {{"approximate", approximate}});
}
Output Builder::geluGrad(Output dy, Output x, bool approximate) {
  return op("GeluGrad", {dy, x}, {{"approximate", approximate}});
}
Output Builder::silu(Output x) {
  return op("Silu", {x});
}
Output Builder::siluGrad(Output dy, Output x) {
  return op("SiluGrad", {dy, x});
}
Output Builder::softplus(Output x) {
  return op("Softplus", {x});
}
Output Builder::softplusGrad(Output dy, Output x) {
  return op("SoftplusGrad", {dy, x});
}
Output Builder::huber(Output difference, double delta) {
  return op("Huber", {difference}, {{"delta", delta}});
}
Output Builder::huberGrad(Output dy, Output difference, double delta) {
  return op("HuberGrad", {dy, difference}, {{"delta", delta}});
}

Builder::CrossEntropy Builder::softmaxCrossEntropy(Output logits, Output targets) {
  const NodeId id = node("SoftmaxCrossEntropyWithLogits", {logits, targets});
  return {{id, 0}, {id, 1}};
}

Builder::BatchNorm Builder::batchNorm(Output x, Output scale, Output offset, double epsilon) {
  const NodeId id = node("FusedBatchNorm", {x, scale, offset}, {{"epsilon", epsilon}});
  return {{id, 0}, {id, 1}, {id, 2}, {id, 3}};
}

Output Builder::batchNormInference(Output x, Output scale, Output offset, Output mean,
                                   Output variance, double epsilon) {
  return op("FusedBatchNormInference", {x, scale, offset, mean, variance}, {{"epsilon", epsilon}});
}

Builder::LayerNorm Builder::layerNorm(Output x, Output scale, Output offset, double epsilon) {
  const NodeId id = node("LayerNorm", {x, scale, offset}, {{"epsilon", epsilon}});
  return {{id, 0}, {id, 1}, {id, 2}};
}

Builder::NormGrad Builder::batchNormGrad(Output dy, Output x, Output scale, Output mean,
                                         Output inverse, double epsilon) {
  const NodeId id =
      node("FusedBatchNormGrad", {dy, x, scale, mean, inverse}, {{"epsilon", epsilon}});
  return {{id, 0}, {id, 1}, {id, 2}};
}

Builder::NormGrad Builder::layerNormGrad(Output dy, Output x, Output scale, Output mean,
                                         Output inverse, double epsilon) {
  const NodeId id = node("LayerNormGrad", {dy, x, scale, mean, inverse}, {{"epsilon", epsilon}});
  return {{id, 0}, {id, 1}, {id, 2}};
}

Output Builder::concat(std::vector<Output> parts, int64_t axis) {
  return op("Concat", std::move(parts), {{"axis", axis}});
}

Output Builder::slice(Output x, Shape begin, Shape size) {
  return op("Slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

Output Builder::pad(Output x, Shape before, Shape after) {
  return op("Pad", {x}, {{"before", std::move(before)}, {"after", std::move(after)}});
}

Output Builder::transpose(Output x, Shape permutation) {
  return op("Transpose", {x}, {{"permutation", std::move(permutation)}});
}
Output Builder::gather(Output table, Output indices) {
  return op("Gather", {table, indices});
}

Output Builder::unsortedSegmentSum(Output dy, Output indices, Shape table) {
  return op("UnsortedSegmentSum", {dy, indices}, {{"shape", std::move(table)}});
}

Output Builder::depthwiseConv2D(Output x, Output filter, const Window& window) {
  const Shape& f = graph_.spec(filter).shape;
  if (f.rank() != 4) return conv2D(x, filter, window);  // reports the error
  const int64_t channels = f.dim(2);
  const Shape grouped = {f.dim(0), f.dim(1), 1, channels * f.dim(3)};
  return conv2D(x, reshape(filter, grouped), window, channels);
}

}  // namespace dtf::graph
