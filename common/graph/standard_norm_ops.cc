// Normalisation. All tensors are float32. x has rank 2 or more: its last dimension is the channels
// C, all others are rows. All ops have the attribute epsilon, a double above 0.
//
//   op                       inputs                outputs
//   FusedBatchNorm           x, scale [C],         0, y: (x - mean) * inverse * scale + offset
//                            offset [C]            1, mean [C]: of each channel over all rows
//                                                  2, variance [C]: sum((x - mean)^2) / (rows - 1),
//                                                  for moving statistics, as in TensorFlow
//                                                  3, inverse [C]: 1 / sqrt(sum((x - mean)^2) /
//                                                  rows + epsilon)
//   FusedBatchNormGrad       dy, x, scale,         0, dx; 1, dscale [C]; 2, doffset [C]
//                            mean, inverse
//   FusedBatchNormInference  x, scale, offset,     (x - mean) / sqrt(variance + epsilon) * scale +
//                            mean, variance [C]    offset: TensorFlow's FusedBatchNorm that isn't
//                                                  training
//   LayerNorm                x, scale [C],         0, y: (x - mean) * inverse * scale + offset
//                            offset [C]            1, mean [rows]: of each row over its channels
//                                                  2, inverse [rows]: 1 / sqrt(sum((x - mean)^2) /
//                                                  C + epsilon)
//   LayerNormGrad            dy, x, scale,         0, dx; 1, dscale [C]; 2, doffset [C]
//                            mean, inverse

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Specs = std::vector<TensorSpec>;

int64_t channelsOf(const TensorSpec& x) {
  return x.shape.dim(x.shape.rank() - 1);
}

int64_t rowsOf(const TensorSpec& x) {
  return x.shape.elements() / channelsOf(x);
}

void wantRows(const TensorSpec& x, const Attributes& attributes) {
  wantFloat(x, "x");
  wantRankAtLeast(x, 2, "x");
  if (x.shape.elements() == 0) {
    throw Error(ErrorCode::kBadConfig, "x " + specText(x) + " has no elements to normalise");
  }
  const double epsilon = get<double>(attributes, "epsilon");
  if (!(epsilon > 0)) {
    throw Error(ErrorCode::kBadConfig, "epsilon must be above 0, it is " + std::to_string(epsilon));
  }
}

void wantVector(const TensorSpec& spec, int64_t length, const char* name) {
  if (spec == floats({length})) return;
  throw Error(ErrorCode::kBadConfig,
              std::string(name) + " " + specText(spec) + " must be " + specText(floats({length})));
}

Specs inferBatchNorm(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantRows(inputs[0], attributes);
  const int64_t channels = channelsOf(inputs[0]);
  wantVector(inputs[1], channels, "scale");
  wantVector(inputs[2], channels, "offset");
  return {inputs[0], floats({channels}), floats({channels}), floats({channels})};
}

Specs inferInference(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Specs trained = inferBatchNorm(inputs, attributes);
  wantSame(inputs[3], "mean", trained[1], "the channels' means");
  wantSame(inputs[4], "variance", trained[2], "the channels' variances");
  return {trained[0]};
}

Specs inferLayerNorm(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Specs like_batch_norm = inferBatchNorm(inputs, attributes);
  return {like_batch_norm[0], floats({rowsOf(inputs[0])}), floats({rowsOf(inputs[0])})};
}

// The statistics of a batch normalisation are by channel, of a layer normalisation by row.
ShapeFunction inferGrad(bool by_channel) {
  return [by_channel](std::span<const TensorSpec> inputs, const Attributes& attributes) -> Specs {
    const TensorSpec& x = inputs[1];
    wantRows(x, attributes);
    wantSame(inputs[0], "dy", x, "x");
    const int64_t channels = channelsOf(x), statistics = by_channel ? channels : rowsOf(x);
    wantVector(inputs[2], channels, "scale");
    wantVector(inputs[3], statistics, "mean");
    wantVector(inputs[4], statistics, "inverse");
    return {x, floats({channels}), floats({channels})};
  };
}

}  // namespace

void addNormOps(OpCatalog& catalog) {
  const AttributeDef epsilon{"epsilon", AttributeDef::Type::kDouble};
  catalog.add({"FusedBatchNorm", 3, {epsilon}, inferBatchNorm});
  catalog.add({"FusedBatchNormGrad", 5, {epsilon}, inferGrad(true)});
  catalog.add({"FusedBatchNormInference", 5, {epsilon}, inferInference});
  catalog.add({"LayerNorm", 3, {epsilon}, inferLayerNorm});
  catalog.add({"LayerNormGrad", 5, {epsilon}, inferGrad(false)});
}

}  // namespace dtf::graph
