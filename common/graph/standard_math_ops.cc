// Arithmetic. All is float32 and row-major unless said; "same" means the same dtype and shape.
//
//   op                 inputs             attributes         outputs
//   Identity           x, any dtype       -                  x, unchanged
//   ZerosLike          x, any dtype       -                  zeros, same as x
//   Reshape            x, any dtype       shape              x's elements in order, as `shape`
//   Normalise          x uint8            scale double       float(x) * scale
//   Add, Sub, Mul      a, b: same         -                  a + b, a - b, a * b by element
//   SquaredDifference  a, b: same         -                  (a - b)^2 by element
//   Less, LessEqual,   a, b: same         -                  uint8, same shape: 1 where a < b,
//   Equal              of any dtype                          a <= b, a == b; else 0
//   Abs                x                  -                  |x|
//   AbsGrad            dy, x: same        -                  dy * sign(x), 0 where x is 0
//   Scale              x                  factor double      x * factor
//   AddN               one or more: same  -                  their sum, from left to right
//   MatMul             a [M,K], b [K,N]   transpose_a bool,  a * b [M,N]; a is stored as [K,M]
//                                         transpose_b bool   with transpose_a, b as [N,K] with
//                                         (default false)    transpose_b
//   BiasAdd            x [..,N], b [N]    -                  x with b added to each row; x has two
//                                                            dimensions or more
//   BiasAddGrad        dy [..,N]          -                  [N]: the sum of dy's rows
//   Mean               x, not empty       -                  scalar: the mean of all elements
//   MeanGrad           dy scalar          shape, not empty   `shape`, filled with dy / elements
//   MulRows            dy [B], x [B,C]    -                  [B,C]: row i of x times dy[i]

#include "common/base/error.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

Specs inferReshape(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Shape& shape = get<Shape>(attributes, "shape");
  if (shape.elements() != inputs[0].shape.elements()) {
    throw Error(ErrorCode::kBadConfig, "x " + specText(inputs[0]) + " has " +
                                           std::to_string(inputs[0].shape.elements()) +
                                           " elements, the shape " + shape.str() + " has " +
                                           std::to_string(shape.elements()));
  }
  return {{inputs[0].dtype, shape}};
}

Specs inferComparison(std::span<const TensorSpec> inputs, const Attributes&) {
  wantSame(inputs[0], "a", inputs[1], "b");
  return {{DType::kUInt8, inputs[0].shape}};
}

Specs inferNormalise(std::span<const TensorSpec> inputs, const Attributes&) {
  if (inputs[0].dtype != DType::kUInt8) {
    throw Error(ErrorCode::kBadConfig, "x " + specText(inputs[0]) + " must be uint8");
  }
  return {floats(inputs[0].shape)};
}

Specs inferMatMul(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const TensorSpec& a = inputs[0];
  const TensorSpec& b = inputs[1];
  wantFloat(a, "a");
  wantFloat(b, "b");
  wantRank(a, 2, "a");
  wantRank(b, 2, "b");
  const int a_rows = get<bool>(attributes, "transpose_a") ? 1 : 0;
  const int b_rows = get<bool>(attributes, "transpose_b") ? 1 : 0;
  wantSameDim(a, 1 - a_rows, "a", b, b_rows, "b");
  return {floats({a.shape.dim(a_rows), b.shape.dim(1 - b_rows)})};
}

Specs inferBiasAdd(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "x");
  wantFloat(inputs[1], "b");
  wantRankAtLeast(inputs[0], 2, "x");
  wantRank(inputs[1], 1, "b");
  wantSameDim(inputs[0], inputs[0].shape.rank() - 1, "x", inputs[1], 0, "b");
  return {inputs[0]};
}

Specs inferBiasAddGrad(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "dy");
  wantRankAtLeast(inputs[0], 2, "dy");
  return {floats({inputs[0].shape.dim(inputs[0].shape.rank() - 1)})};
}

void wantElements(const Shape& shape) {
  if (shape.elements() == 0) {
    throw Error(ErrorCode::kBadConfig, "the mean over " + shape.str() + " has no elements");
  }
}

Specs inferMean(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "x");
  wantElements(inputs[0].shape);
  return {floats(Shape())};
}

Specs inferMeanGrad(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantFloat(inputs[0], "dy");
  wantRank(inputs[0], 0, "dy");
  wantElements(get<Shape>(attributes, "shape"));
  return declaredFloat(inputs, attributes);
}

Specs inferMulRows(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "dy");
  wantFloat(inputs[1], "x");
  wantRank(inputs[0], 1, "dy");
  wantRank(inputs[1], 2, "x");
  wantSameDim(inputs[0], 0, "dy", inputs[1], 0, "x");
  return {inputs[1]};
}

}  // namespace

void addMathOps(OpCatalog& catalog) {
  catalog.add({"Identity", 1, {}, passThrough});
  catalog.add({"ZerosLike", 1, {}, passThrough});
  catalog.add({"Reshape", 1, {{"shape", Type::kShape}}, inferReshape});
  catalog.add({"Normalise", 1, {{"scale", Type::kDouble}}, inferNormalise});
  catalog.add({"Add", 2, {}, elementwise});
  catalog.add({"Sub", 2, {}, elementwise});
  catalog.add({"Mul", 2, {}, elementwise});
  for (const char* const op : {"Less", "LessEqual", "Equal"})
    catalog.add({op, 2, {}, inferComparison});
  catalog.add({"Abs", 1, {}, elementwise});
  catalog.add({"AbsGrad", 2, {}, elementwise});
  catalog.add({"Scale", 1, {{"factor", Type::kDouble}}, elementwise});
  catalog.add({"AddN", -1, {}, elementwise});
  catalog.add({"MatMul",
               2,
               {{"transpose_a", Type::kBool, false}, {"transpose_b", Type::kBool, false}},
               inferMatMul});
  catalog.add({"BiasAdd", 2, {}, inferBiasAdd});
  catalog.add({"BiasAddGrad", 1, {}, inferBiasAddGrad});
  catalog.add({"Mean", 1, {}, inferMean});
  catalog.add({"MeanGrad", 1, {{"shape", Type::kShape}}, inferMeanGrad});
  catalog.add({"MulRows", 2, {}, inferMulRows});
  catalog.add({"SquaredDifference", 2, {}, elementwise});
}

}  // namespace dtf::graph
