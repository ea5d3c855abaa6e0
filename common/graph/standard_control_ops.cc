// Branches and loops over functions (function.h), after TensorFlow's functional control flow (If,
// While) and JAX's scan. Any dtype is allowed unless noted.
//
//   op     inputs                attributes                  outputs
//   If     condition: a scalar,  then_branch, else_branch    the results of the branch that runs:
//          arguments             function                    then_branch's where the condition is
//                                                            not 0. Both take the arguments, and
//                                                            have results of the same specs
//   While  [iterations],         body function, and          the carried state at the end;
//   iterations
//          carried, sequences,   the rest below              int64 scalar: how many ran;
//          captured                                      stacked; summed; [kept]
//
// An iteration of a While calls the body with
//   carried    the loop's state: the inputs in the first iteration, then the body's results;
//   sequences  slice i of each, along the first dimension, in iteration i;
//   captured   all other inputs, unchanged;
// and the body's results are the new state, then
//   stacked    slice i of an output; slices of iterations that didn't run are 0;
//   summed     float32, added up over the iterations, in their order.
// The loop continues while `cond` (a function of carried and captured, with one scalar result) is
// not 0, and for max_iterations at most; without cond it runs that often. Sequences have
// max_iterations slices. With `counted` there is no cond, and the first input, an int64 scalar, is
// the number of iterations (0 to max_iterations). `reverse`, without cond too, takes the slices
// from the last to the first, and stacks its results in the same order: iteration 0 has slice
// iterations - 1. With `keep_carried` the outputs end with kept: the state before each iteration,
// stacked. The gradient needs it; it is itself a While, which takes the iterations in reverse.

#include <algorithm>

#include "common/base/error.h"
#include "common/graph/function.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"
#include "common/graph/while_op.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

[[noreturn]] void refuseControl(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

// Reports the first difference of two lists that should be equal, or their lengths: a list may have
// thousands of entries.
// `wanted` and `found` are verbs with their subjects: "the body takes".
[[noreturn]] void refuseMisfit(const std::string& wanted, const Specs& these,
                               const std::string& found, const Specs& those,
                               const std::string& what) {
  if (these.size() != those.size())
    refuseControl(wanted + " " + std::to_string(these.size()) + " " + what + "(s), " + found + " " +
                  std::to_string(those.size()));
  const auto at = std::mismatch(these.begin(), these.end(), those.begin());
  refuseControl(wanted + " " + specText(*at.first) + " as " + what + " " +
                std::to_string(at.first - these.begin()) + ", " + found + " " +
                specText(*at.second));
}

const Function& needed(const Attributes& attributes, const char* key) {
  const FunctionRef& function = get<FunctionRef>(attributes, key);
  if (function == nullptr) refuseControl(std::string(key) + " is no function");
  return *function;
}

void wantParameters(const Function& function, const char* name, const Specs& arguments) {
  const Specs parameters = function.parameterSpecs();
  if (parameters == arguments) return;
  refuseMisfit(std::string(name) + " takes", parameters, "but is called with", arguments,
               "argument");
}

void wantScalar(const TensorSpec& spec, const char* name) {
  if (spec.shape.rank() != 0)
    refuseControl(std::string(name) + " " + specText(spec) + " must be a scalar");
}

Specs inferIf(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  if (inputs.empty()) refuseControl("needs a condition");
  wantScalar(inputs[0], "the condition");
  const Specs arguments(inputs.begin() + 1, inputs.end());
  const Function& then_branch = needed(attributes, "then_branch");
  const Function& else_branch = needed(attributes, "else_branch");
  wantParameters(then_branch, "then_branch", arguments);
  wantParameters(else_branch, "else_branch", arguments);
  Specs results = then_branch.resultSpecs();
  if (results != else_branch.resultSpecs())
    refuseMisfit("then_branch gives", results, "else_branch", else_branch.resultSpecs(), "result");
  if (results.empty()) refuseControl("its branches give nothing");
  return results;
}

size_t count(const Attributes& attributes, const char* key) {
  constexpr int64_t kMost = 1 << 16;
  const int64_t value = get<int64_t>(attributes, key);
  if (value < 0 || value > kMost)
    refuseControl(std::string(key) + " must be from 0 to " + std::to_string(kMost) + ", it is " +
                  std::to_string(value));
  return static_cast<size_t>(value);
}

TensorSpec sliceOf(const TensorSpec& sequence, int64_t slices) {
  if (sequence.shape.rank() == 0 || sequence.shape.dim(0) != slices)
    refuseControl("the sequence " + specText(sequence) + " must have " + std::to_string(slices) +
                  " slices along its first dimension, one for each of max_iterations");
  const std::vector<int64_t>& dims = sequence.shape.dims();
  return {sequence.dtype, Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()))};
}

TensorSpec stackOf(const TensorSpec& slice, int64_t slices) {
  std::vector<int64_t> dims = slice.shape.dims();
  dims.insert(dims.begin(), slices);
  return {slice.dtype, Shape(std::move(dims))};
}

// Checks the condition that ends a While.
void checkEnd(const WhileOp& op, const Attributes& attributes, std::span<const TensorSpec> inputs,
              const Specs& state) {
  const FunctionRef& cond = get<FunctionRef>(attributes, "cond");
  const int64_t inner =
      needed(attributes, "body").iterations() + (cond == nullptr ? 0 : cond->iterations());
  const int64_t most = Function::kIterationsMax / std::max<int64_t>(1, inner);
  if (op.max_iterations < 1 || op.max_iterations > most)
    refuseControl("max_iterations must be from 1 to " + std::to_string(most) + ", it is " +
                  std::to_string(op.max_iterations) +
                  (op.max_iterations == 0 ? "; each loop needs a bound, even one with cond" : ""));
  if (op.counted && inputs[0] != TensorSpec{DType::kInt64, Shape()})
    refuseControl("the number of iterations " + specText(inputs[0]) + " must be an int64 scalar");
  if (cond == nullptr) return;
  if (op.counted || op.reverse)
    refuseControl(
        "a loop that is counted or goes in reverse runs a known number of times: it has no cond");
  wantParameters(*cond, "cond", state);
  const Specs results = cond->resultSpecs();
  if (results.size() != 1)
    refuseControl("cond must give one result, it gives " + std::to_string(results.size()));
  wantScalar(results[0], "the result of cond,");
}

Specs outputsOf(const WhileOp& op, const Specs& carried, const Specs& results) {
  if (results.size() != op.carried + op.stacked + op.summed)
    refuseControl("the body gives " + std::to_string(results.size()) +
                  " result(s); it must give the " + std::to_string(op.carried) + " carried, then " +
                  std::to_string(op.stacked) + " stacked and " + std::to_string(op.summed) +
                  " summed");
  const Specs next(results.begin(), results.begin() + static_cast<ptrdiff_t>(op.carried));
  if (next != carried) refuseMisfit("the body gives", next, "but it carries", carried, "result");
  Specs outputs = carried;
  outputs.push_back({DType::kInt64, Shape()});
  for (size_t i = 0; i < op.stacked; ++i)
    outputs.push_back(stackOf(results[op.carried + i], op.max_iterations));
  for (size_t i = 0; i < op.summed; ++i) {
    outputs.push_back(results[op.carried + op.stacked + i]);
    wantFloat(outputs.back(), "a summed result");
  }
  for (size_t i = 0; op.keep_carried && i < op.carried; ++i)
    outputs.push_back(stackOf(carried[i], op.max_iterations));
  return outputs;
}

Specs inferWhile(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  for (const char* key : {"carried", "sequences", "stacked", "summed"}) count(attributes, key);
  const WhileOp op = WhileOp::of(attributes, inputs.size());
  if (inputs.size() < op.firstCaptured())
    refuseControl("takes " + std::to_string(op.firstCaptured()) + " input(s) at least, got " +
                  std::to_string(inputs.size()));
  const Specs carried(inputs.begin() + op.firstCarried(), inputs.begin() + op.firstSequence());
  const Specs captured(inputs.begin() + op.firstCaptured(), inputs.end());
  Specs state = carried;
  state.insert(state.end(), captured.begin(), captured.end());
  checkEnd(op, attributes, inputs, state);
  Specs arguments = carried;
  for (size_t i = op.firstSequence(); i < op.firstCaptured(); ++i)
    arguments.push_back(sliceOf(inputs[i], op.max_iterations));
  arguments.insert(arguments.end(), captured.begin(), captured.end());
  const Function& body = needed(attributes, "body");
  wantParameters(body, "the body", arguments);
  return outputsOf(op, carried, body.resultSpecs());
}

}  // namespace

WhileOp WhileOp::of(const Attributes& attributes, size_t inputs) {
  const auto number = [&](const char* key) {
    return static_cast<size_t>(get<int64_t>(attributes, key));
  };
  return {.inputs = inputs,
          .carried = number("carried"),
          .sequences = number("sequences"),
          .stacked = number("stacked"),
          .summed = number("summed"),
          .max_iterations = get<int64_t>(attributes, "max_iterations"),
          .reverse = get<bool>(attributes, "reverse"),
          .counted = get<bool>(attributes, "counted"),
          .keep_carried = get<bool>(attributes, "keep_carried")};
}

void addControlOps(OpCatalog& catalog) {
  const auto function = [](const char* name, bool required = true) {
    return AttributeDef{name, Type::kFunction, required};
  };
  const auto optional = [](const char* name, Type type) { return AttributeDef{name, type, false}; };
  catalog.add({"If", -1, {function("then_branch"), function("else_branch")}, inferIf});
  catalog.add({"While",
               -1,
               {function("body"),
                function("cond", false),
                {"max_iterations", Type::kInt},
                optional("carried", Type::kInt),
                optional("sequences", Type::kInt),
                optional("stacked", Type::kInt),
                optional("summed", Type::kInt),
                optional("reverse", Type::kBool),
                optional("counted", Type::kBool),
                optional("keep_carried", Type::kBool)},
               inferWhile});
}

}  // namespace dtf::graph
