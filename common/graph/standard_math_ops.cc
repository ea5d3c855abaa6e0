// Arithmetic. All tensors are float32 and row-major unless noted; "same" means the same dtype and
// shape. a and b that aren't called the same are broadcast, as in NumPy and TensorFlow: aligned at
// the last dimension, their dimensions are equal, or one is 1 or missing and is repeated.
//
//   op                 inputs             attributes         outputs
//   Identity           x, any dtype       -                  x, unchanged
//   StopGradient       x, any dtype       -                  x, as a constant to gradients
//   ZerosLike          x, any dtype       -                  zeros, same as x
//   Reshape            x, any dtype       shape              x's elements in order, as `shape`
//   Normalise          x uint8            scale double       float(x) * scale
//   Add, Sub, Mul      a, b               -                  a + b, a - b, a * b by element
//   Div                a, b               -                  a / b by element, as IEEE 754 has it:
//                                                            infinite or NaN where b is 0
//   Maximum, Minimum   a, b               -                  the larger, the smaller one by
//                                                            element; NaN where either is
//   SquaredDifference  a, b               -                  (a - b)^2 by element
//   Pow                a, b               -                  a to the power of b by element, as C's
//                                                            pow(): 1 where b is 0, NaN where a is
//                                                            below 0 and b no whole number
//   Less, LessEqual,   a, b: of one       -                  uint8: 1 where a < b, a <= b, a == b;
//   Equal              dtype, any                            else 0
//   Select             condition uint8,   -                  a where the condition is not 0, else
//                      a, b: same, of its                    b; nothing of the other one, were it
//                      shape                                 NaN
//   Exp                x                  -                  e^x
//   Log                x                  -                  the natural logarithm; -infinity of 0,
//                                                            NaN below
//   Sqrt               x                  -                  the square root, NaN below 0
//   Rsqrt              x                  -                  1 / Sqrt(x)
//   Cast               x, any dtype       dtype              x as `dtype`; a float as a whole
//                                                            number without its fraction, NaN as 0,
//                                                            numbers beyond dtype's range as the
//                                                            nearest
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
//   Mean               x, not empty       [axes shape,       the mean over these dimensions, which
//                                         keep_dims bool]    are left out, or 1 with keep_dims; no
//                                                            axes: over all
//   Sum                x                  likewise           likewise, the sum; 0 of nothing
//   Max, Min           x                  likewise           likewise, the largest, the smallest
//                                                            one; NaN where one of them is;
//                                                            -infinity, infinity of nothing
//   ArgMax             x                  axis int           int64, without this dimension, which
//                                                            has elements: where along it the
//                                                            largest one is, of equal ones the
//                                                            first; NaN is none
//   BroadcastTo        x                  shape              x repeated to `shape`, as an a that
//                                                            meets a b of it
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
  if (inputs[0].dtype != inputs[1].dtype) {
    throw Error(ErrorCode::kBadConfig, "a " + specText(inputs[0]) + " and b " +
                                           specText(inputs[1]) + " must be of one dtype");
  }
  return {{DType::kUInt8, broadcast(inputs[0].shape, "a", inputs[1].shape, "b")}};
}

Specs inferSelect(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[1], "a");
  wantSame(inputs[1], "a", inputs[2], "b");
  wantSame(inputs[0], "condition", {DType::kUInt8, inputs[1].shape}, "one of a's shape");
  return {inputs[1]};
}

Specs inferCast(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  return {{get<DType>(attributes, "dtype"), inputs[0].shape}};
}

[[noreturn]] void refuseAxis(int64_t axis, const TensorSpec& x) {
  throw Error(ErrorCode::kBadConfig, "axis " + std::to_string(axis) + " is none of " + specText(x) +
                                         axisRemedy(axis, x.shape.rank()));
}

// Returns for each dimension of x whether it is reduced; no axes means all.
std::vector<bool> reducedAxes(const TensorSpec& x, const Attributes& attributes) {
  const Shape& axes = get<Shape>(attributes, "axes");
  std::vector<bool> reduced(static_cast<size_t>(x.shape.rank()), axes.rank() == 0);
  for (const int64_t axis : axes.dims()) {
    if (axis >= x.shape.rank()) refuseAxis(axis, x);
    if (reduced[static_cast<size_t>(axis)]) {
      throw Error(ErrorCode::kBadConfig, "axis " + std::to_string(axis) + " is named twice");
    }
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

Specs inferSum(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantFloat(inputs[0], "x");
  const std::vector<bool> reduced = reducedAxes(inputs[0], attributes);
  const bool keep = get<bool>(attributes, "keep_dims");
  std::vector<int64_t> dims;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) dims.push_back(inputs[0].shape.dims()[i]);
    if (reduced[i] && keep) dims.push_back(1);
  }
  return {floats(Shape(std::move(dims)))};
}

Specs inferArgMax(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantFloat(inputs[0], "x");
  const int64_t axis = get<int64_t>(attributes, "axis");
  std::vector<int64_t> dims = inputs[0].shape.dims();
  if (axis < 0 || axis >= inputs[0].shape.rank()) refuseAxis(axis, inputs[0]);
  if (dims[static_cast<size_t>(axis)] == 0) {
    throw Error(ErrorCode::kBadConfig,
                "x " + specText(inputs[0]) + " has no elements along axis " + std::to_string(axis));
  }
  dims.erase(dims.begin() + axis);
  return {{DType::kInt64, Shape(std::move(dims))}};
}

Specs inferBroadcastTo(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantFloat(inputs[0], "x");
  const Shape& shape = get<Shape>(attributes, "shape");
  if (broadcast(inputs[0].shape, "x", shape, "the shape") != shape) {
    throw Error(ErrorCode::kBadConfig, "x " + specText(inputs[0]) +
                                           " can't be repeated to the shape " + shape.str() +
                                           ": it has more dimensions, or larger ones");
  }
  return {floats(shape)};
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

Specs inferMean(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantFloat(inputs[0], "x");
  wantElements(inputs[0].shape);
  return inferSum(inputs, attributes);
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
  catalog.add({"StopGradient", 1, {}, passThrough});
  catalog.add({"ZerosLike", 1, {}, passThrough});
  catalog.add({"Reshape", 1, {{"shape", Type::kShape}}, inferReshape});
  catalog.add({"Normalise", 1, {{"scale", Type::kDouble}}, inferNormalise});
  for (const char* const op : {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow"})
    catalog.add({op, 2, {}, broadcastElementwise});
  for (const char* const op : {"Exp", "Log", "Sqrt", "Rsqrt"})
    catalog.add({op, 1, {}, elementwise});
  catalog.add({"Select", 3, {}, inferSelect});
  catalog.add({"Cast", 1, {{"dtype", Type::kDType}}, inferCast});
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
  const std::vector<AttributeDef> reduction = {{"axes", Type::kShape, false},
                                               {"keep_dims", Type::kBool, false}};
  catalog.add({"Mean", 1, reduction, inferMean});
  for (const char* const op : {"Sum", "Max", "Min"}) catalog.add({op, 1, reduction, inferSum});
  catalog.add({"ArgMax", 1, {{"axis", Type::kInt}}, inferArgMax});
  catalog.add({"BroadcastTo", 1, {{"shape", Type::kShape}}, inferBroadcastTo});
  catalog.add({"MeanGrad", 1, {{"shape", Type::kShape}}, inferMeanGrad});
  catalog.add({"MulRows", 2, {}, inferMulRows});
  catalog.add({"SquaredDifference", 2, {}, broadcastElementwise});
}

}  // namespace dtf::graph
