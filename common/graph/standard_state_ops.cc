// Inputs of a step, state that outlives it, and transfers to other tasks. Ops marked * are
// stateful: never merged, never folded.
//
//   op               inputs          attributes            outputs
//   Placeholder      -               dtype, shape          the fed value; never computed
//   Const            -               dtype, shape,         filled with value
//                                    value double
//   Variable *       -               shape,                the value that the variable had when the
//                                    initializer string,   step began to use it
//                                    [dtype,
//                                    stream int,
//                                    shared_name, container string]
//   ReadVariable *   variable        -                     the value that it has when this runs
//   Assign *         variable,       -                     the variable's value from now on:
//                    value                                 `value`
//   AssignAdd *,     likewise        -                     the old value plus, or minus, `value`
//   AssignSub *
//   ScatterAdd *,    variable [R,..],-                     the old value; each row of updates added
//   ScatterUpdate *  indices,                              to, or in place of the row that its
//                    updates [indices' dimensions, ..]     index names, one after the other
//   ApplyGradient *  variable,       -                     none; the optimizer takes one step,
//                    gradient: same                        or a moving average moves to `gradient`
//   ApplySparse-     variable [R,..],-                     none; the optimizer takes one step with
//   Gradient *       gradient [indices' dimensions, ..],   the gradient of the rows that indices
//                    indices                               name, as of Gather; those named twice
//                                                          are summed
//   NoOp             -               -                     none; holds control inputs together
// The partitioner inserts:
//   _Send *          x, any dtype    key, dtype, shape     none; x leaves under key
//   _Recv *          -               key, dtype, shape     the tensor received under key
//   _Pull *          -               variable, shape       float32: the value of a variable on ps
//   _Push *          gradient        variable              none; the gradient leaves for the ps
//   _PushSparse *    gradient,       variable              likewise, with the rows that it is of
//                    indices
//
// A variable is float32, or a counter: an int64 scalar, such as the global step, which only
// Assign, AssignAdd and AssignSub change. `stream` is the number of its initial values among all
// with one seed, from 1 on; 0: its place among the graph's variables.
//
// A variable is identified by the name of its node; the attribute `variable` holds that name. If
// variables outlive the graph, shared_name may replace that name, and container names the
// variables' owner. Initializers are listed in initializer.h. Input 0 of nodes that read, assign or
// update a variable is the output of a Variable node, and stands for the variable, not for its
// value.

#include <algorithm>
#include <cmath>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/graph/initializer.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

Specs inferVariable(std::span<const TensorSpec>, const Attributes& attributes) {
  const std::string& initializer = get<std::string>(attributes, "initializer");
  wantInitializer(initializer, get<int64_t>(attributes, "stream"));
  const TensorSpec spec{get<DType>(attributes, "dtype"), get<Shape>(attributes, "shape")};
  const bool is_counter = spec.dtype == DType::kInt64 && spec.shape.rank() == 0;
  if (spec.dtype != DType::kFloat32 && !is_counter)
    throw Error(ErrorCode::kBadConfig,
                "a variable is float32, or a counter, int64[]; this is " + specText(spec));
  if (is_counter && initializer != "zeros")
    throw Error(ErrorCode::kBadConfig, "the initializer of a counter, int64[], is zeros, not " +
                                           initializer + "; Assign gives it another value");
  return {spec};
}

// Returns whether `value` is a whole number in [-2^bits, 2^bits), or from 0 if the type is
// unsigned.
bool isWhole(double value, int bits, bool has_sign) {
  const double end = std::ldexp(1.0, bits);
  return value >= (has_sign ? -end : 0) && value < end && value == std::trunc(value);
}

Specs inferConst(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  Specs specs = declared(inputs, attributes);
  const double value = std::get<double>(attributes.find("value")->second);
  const DType dtype = specs[0].dtype;
  const bool fits = dtype == DType::kFloat32 ||
                    (dtype == DType::kUInt8 && isWhole(value, 8, false)) ||
                    (dtype == DType::kInt32 && isWhole(value, 31, true)) ||
                    (dtype == DType::kInt64 && isWhole(value, 63, true));
  if (!fits)
    throw Error(ErrorCode::kBadConfig, "the value " + std::to_string(value) + " is none of " +
                                           std::string(dtypeName(dtype)));
  return specs;
}

Specs inferApplyGradient(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "variable");
  wantSame(inputs[0], "variable", inputs[1], "gradient");
  return {};
}

Specs inferApplySparse(std::span<const TensorSpec> inputs, const Attributes&) {
  wantSame(inputs[1], "gradient", gathered(inputs[0], inputs[2]), "the gathered rows");
  return {};
}

void wantVariable(const TensorSpec& spec) {
  if (spec.dtype != DType::kInt64) wantFloat(spec, "variable");
}

Specs inferRead(std::span<const TensorSpec> inputs, const Attributes&) {
  wantVariable(inputs[0]);
  return {inputs[0]};
}

Specs inferAssign(std::span<const TensorSpec> inputs, const Attributes&) {
  wantVariable(inputs[0]);
  wantSame(inputs[0], "variable", inputs[1], "value");
  return {inputs[0]};
}

Specs inferScatter(std::span<const TensorSpec> inputs, const Attributes&) {
  wantSame(inputs[2], "updates", gathered(inputs[0], inputs[1]), "the gathered rows");
  return {inputs[0]};
}

Specs inferPush(std::span<const TensorSpec> inputs, const Attributes&) {
  wantFloat(inputs[0], "gradient");
  return {};
}

Specs inferSend(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantSame(inputs[0], "x", declared(inputs, attributes)[0], "the declared tensor");
  return {};
}

}  // namespace

void wantInitializer(const std::string& initializer, int64_t stream) {
  const std::vector<std::string> names = split(kInitializerNames, '|');
  const bool known = std::find(names.begin(), names.end(), initializer) != names.end();
  if (!known && !constantOf(initializer) && !spreadOf(initializer)) {
    const std::vector<std::string_view> words(names.begin(), names.end());
    const std::string nearest = nearestWord(initializer, words);
    throw Error(ErrorCode::kBadConfig,
                "unknown initializer '" + initializer + "'" +
                    (nearest.empty() ? "; it must be one of " + join(names, ", ") +
                                           ", constant=0.1, random_normal=0.1"
                                     : " - did you mean '" + nearest + "'?"));
  }
  // The streams of initial values are counted in 24 bits.
  constexpr int64_t kStreamsMax = int64_t{1} << 24;
  if (stream >= 0 && stream < kStreamsMax) return;
  throw Error(ErrorCode::kBadConfig, "stream must be from 0 to " + std::to_string(kStreamsMax - 1) +
                                         ", it is " + std::to_string(stream));
}

void addStateOps(OpCatalog& catalog) {
  const AttributeDef dtype{"dtype", Type::kDType};
  const AttributeDef shape{"shape", Type::kShape};
  const AttributeDef key{"key", Type::kString};
  const AttributeDef variable{"variable", Type::kString};
  catalog.add({"Placeholder", 0, {dtype, shape}, declared});
  catalog.add({"Const", 0, {dtype, shape, {"value", Type::kDouble}}, inferConst});
  catalog.add({"Variable",
               0,
               {shape,
                {"initializer", Type::kString},
                {"dtype", Type::kDType, false},
                {"stream", Type::kInt, false},
                {"shared_name", Type::kString, false},
                {"container", Type::kString, false}},
               inferVariable,
               true});
  catalog.add({"ReadVariable", 1, {}, inferRead, true});
  for (const char* const op : {"Assign", "AssignAdd", "AssignSub"})
    catalog.add({op, 2, {}, inferAssign, true});
  for (const char* const op : {"ScatterAdd", "ScatterUpdate"})
    catalog.add({op, 3, {}, inferScatter, true});
  catalog.add({"ApplyGradient", 2, {}, inferApplyGradient, true});
  catalog.add({"ApplySparseGradient", 3, {}, inferApplySparse, true});
  catalog.add({"NoOp", 0, {}, noOutput});
  catalog.add({"_Send", 1, {key, dtype, shape}, inferSend, true});
  catalog.add({"_Recv", 0, {key, dtype, shape}, declared, true});
  catalog.add({"_Pull", 0, {variable, shape}, declaredFloat, true});
  catalog.add({"_Push", 1, {variable}, inferPush, true});
  catalog.add({"_PushSparse", 2, {variable}, inferPush, true});
}

}  // namespace dtf::graph
