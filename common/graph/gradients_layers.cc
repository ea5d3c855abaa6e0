// The gradients of activations, losses, normalisation and parts of tensors.

#include "common/base/error.h"
#include "common/graph/gradient_functions.h"

namespace dtf::graph {
namespace {

using Request = GradientRequest;

Gradients absGradient(Builder& b, const Request& r) {
  return {b.absGrad(dyOf(r), in(r, 0))};
}
Gradients relu6Gradient(Builder& b, const Request& r) {
  return {b.relu6Grad(dyOf(r), yOf(r))};
}
Gradients leakyReluGradient(Builder& b, const Request& r) {
  return {b.leakyReluGrad(dyOf(r), in(r, 0), r.node.attribute<double>("alpha"))};
}
Gradients eluGradient(Builder& b, const Request& r) {
  return {b.eluGrad(dyOf(r), yOf(r))};
}
Gradients geluGradient(Builder& b, const Request& r) {
  return {b.geluGrad(dyOf(r), in(r, 0), r.node.attribute<bool>("approximate"))};
}
Gradients siluGradient(Builder& b, const Request& r) {
  return {b.siluGrad(dyOf(r), in(r, 0))};
}
Gradients softplusGradient(Builder& b, const Request& r) {
  return {b.softplusGrad(dyOf(r), in(r, 0))};
}
Gradients huberGradient(Builder& b, const Request& r) {
  return {b.huberGrad(dyOf(r), in(r, 0), r.node.attribute<double>("delta"))};
}

[[noreturn]] void refuse(const Request& r, const std::string& what) {
  throw Error(ErrorCode::kBadConfig,
              "node '" + r.node.name + "' (" + r.node.op + "): " + what + " no gradient");
}

Gradients softmaxCrossEntropyGradient(Builder& b, const Request& r) {
  if (r.output_gradients[1]) refuse(r, "its output 1, backprop, has");
  if (r.wanted[1]) refuse(r, "its targets have");
  return {b.mulRows(dyOf(r), {r.node.id, 1}), std::nullopt};
}

// The statistics are outputs for moving averages, not for a loss.
void refuseStatistics(const Request& r) {
  for (size_t i = 1; i < r.output_gradients.size(); ++i) {
    if (r.output_gradients[i]) refuse(r, "its statistics, outputs 1 and on, have");
  }
}

Gradients batchNormGradient(Builder& b, const Request& r) {
  refuseStatistics(r);
  const auto grad = b.batchNormGrad(dyOf(r), in(r, 0), in(r, 1), {r.node.id, 1}, {r.node.id, 3},
                                    r.node.attribute<double>("epsilon"));
  return {grad.dx, grad.dscale, grad.doffset};
}

// The statistics are constants here, so x gets dy with the same scale; the statistics get no
// gradient.
Gradients inferenceGradient(Builder& b, const Request& r) {
  for (size_t i = 1; i < r.wanted.size(); ++i)
    if (r.wanted[i]) refuse(r, "only its input 0, x, has a gradient: the others have");
  const Output zero = b.constant(b.graph().spec(in(r, 2)).shape, 0);
  Gradients gradients(r.wanted.size());
  gradients[0] = b.batchNormInference(dyOf(r), in(r, 1), zero, zero, in(r, 4),
                                      r.node.attribute<double>("epsilon"));
  return gradients;
}

Gradients layerNormGradient(Builder& b, const Request& r) {
  refuseStatistics(r);
  const auto grad = b.layerNormGrad(dyOf(r), in(r, 0), in(r, 1), {r.node.id, 1}, {r.node.id, 2},
                                    r.node.attribute<double>("epsilon"));
  return {grad.dx, grad.dscale, grad.doffset};
}

Gradients concatGradient(Builder& b, const Request& r) {
  const auto axis = static_cast<size_t>(r.node.attribute<int64_t>("axis"));
  Gradients gradients(r.node.inputs.size());
  std::vector<int64_t> begin(static_cast<size_t>(r.node.outputs[0].shape.rank()), 0);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Shape part = b.graph().spec(in(r, i)).shape;
    if (r.wanted[i]) gradients[i] = b.slice(dyOf(r), Shape(begin), part);
    begin[axis] += part.dims()[axis];
  }
  return gradients;
}

Gradients sliceGradient(Builder& b, const Request& r) {
  const auto& begin = r.node.attribute<Shape>("begin");
  std::vector<int64_t> after = b.graph().spec(in(r, 0)).shape.dims();
  for (size_t i = 0; i < after.size(); ++i) {
    after[i] -= begin.dims()[i] + r.node.outputs[0].shape.dims()[i];
  }
  return {b.pad(dyOf(r), begin, Shape(std::move(after)))};
}

Gradients padGradient(Builder& b, const Request& r) {
  const Shape x = b.graph().spec(in(r, 0)).shape;
  return {b.slice(dyOf(r), r.node.attribute<Shape>("before"), x)};
}

Gradients transposeGradient(Builder& b, const Request& r) {
  const std::vector<int64_t>& permutation = r.node.attribute<Shape>("permutation").dims();
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {b.transpose(dyOf(r), Shape(std::move(inverse)))};
}

Gradients gatherGradient(Builder& b, const Request& r) {
  const Shape table = b.graph().spec(in(r, 0)).shape;
  return {b.unsortedSegmentSum(dyOf(r), in(r, 1), table), std::nullopt};
}

}  // namespace

void addLayerGradients(GradientTable& table) {
  table.add("Abs", absGradient);
  table.add("Relu6", relu6Gradient);
  table.add("LeakyRelu", leakyReluGradient);
  table.add("Elu", eluGradient);
  table.add("Gelu", geluGradient);
  table.add("Silu", siluGradient);
  table.add("Softplus", softplusGradient);
  table.add("Huber", huberGradient);
  table.add("SoftmaxCrossEntropyWithLogits", softmaxCrossEntropyGradient);
  table.add("FusedBatchNorm", batchNormGradient);
  table.add("FusedBatchNormInference", inferenceGradient);
  table.add("LayerNorm", layerNormGradient);
  table.add("Concat", concatGradient);
  table.add("Slice", sliceGradient);
  table.add("Pad", padGradient);
  table.add("Transpose", transposeGradient);
  table.add("Gather", gatherGradient);
}

}  // namespace dtf::graph
