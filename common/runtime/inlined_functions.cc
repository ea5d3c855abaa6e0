#include "common/runtime/inlined_functions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/error.h"
#include "common/graph/function.h"
#include "common/graph/while_op.h"

namespace dtf::runtime {
namespace {

using graph::FunctionRef;
using graph::Output;
using graph::TensorSpec;
using Outputs = std::vector<Output>;

// Returns the spec of slice i of a stack, with a first dimension of 1; the bytes lie as without it.
TensorSpec sliceOf(const TensorSpec& stack) {
  std::vector<int64_t> dims = stack.shape.dims();
  dims.at(0) = 1;
  return {stack.dtype, Shape(std::move(dims))};
}

// Borrows: the step, for one call of run().
class Inliner {
 public:
  explicit Inliner(LoweredStep& step) : step_(step) {
    for (const Operation& operation : step.operations)
      for (const Output& output : operation.outputs) take(output);
    for (const auto& [tensor, constant] : step.constants) take(tensor);
    for (const std::vector<BoundTensor>* bound : {&step.inputs, &step.parameters})
      for (const BoundTensor& tensor : *bound) take(tensor.tensor);
  }

  void run() {
    std::vector<Operation> given = std::move(step_.operations);
    for (Operation& operation : given) append(std::move(operation));
    step_.operations = std::move(made_);
    for (std::vector<BoundTensor>* bound : {&step_.gradients, &step_.fetches})
      for (BoundTensor& tensor : *bound) tensor.tensor = resolve(tensor.tensor);
  }

 private:
  // Returns a name that no other tensor of the step has.
  Output fresh() { return {graph::NodeId{++last_}, 0}; }
  void take(const Output& output) { last_ = std::max(last_, output.node.value); }
  Output resolve(const Output& output) const {
    const auto at = stands_for_.find(output);
    return at == stands_for_.end() ? output : at->second;
  }

  void append(Operation operation) {
    for (Output& input : operation.inputs) input = resolve(input);
    if (operation.op == "While" && unroll(operation)) return;
    if (operation.op == "If" && choose(operation)) return;
    count(operation, 1);
    made_.push_back(std::move(operation));
  }

  // Counts `unrolled` more operations, iterations or parts of a stack against the limit.
  void count(const Operation& operation, size_t unrolled) {
    unrolled_ += unrolled;
    if (unrolled_ <= kUnrolledOperationsMax) return;
    throw Error(
        ErrorCode::kBadConfig,
        "Node '" + operation.name +
            "': a GPU runs a loop as a list of its iterations, and this step has more than " +
            std::to_string(kUnrolledOperationsMax) +
            " operations; place the loop on a CPU, or make its sequence shorter.");
  }

  // Returns the value of a constant tensor; nullopt if it isn't known.
  std::optional<double> constantOf(const Output& tensor) const {
    const auto at = step_.constants.find(tensor);
    if (at == step_.constants.end() || at->second.elements != nullptr) return std::nullopt;
    return at->second.value;
  }

  bool choose(const Operation& o) {
    const std::optional<double> condition = constantOf(o.inputs[0]);
    if (!condition) return false;
    const char* const branch = *condition != 0 ? "then_branch" : "else_branch";
    const Outputs results = call(o, std::get<FunctionRef>(o.attributes.at(branch)),
                                 {o.inputs.begin() + 1, o.inputs.end()});
    for (size_t i = 0; i < o.outputs.size(); ++i) stands_for_[o.outputs[i]] = results[i];
    return true;
  }

  // A function, lowered once for all its calls. Its constants become constants of the step.
  struct Body {
    LoweredStep step;
    std::map<Output, Output> constants;            // by their names in `step`
    std::vector<std::optional<Output>> arguments;  // by parameter; nullopt if it isn't read
  };
  const Body& bodyOf(const FunctionRef& function) {
    const auto [at, is_new] = bodies_.try_emplace(function.get());
    Body& body = at->second;
    if (!is_new) return body;
    body.step = lower(function->graph(), function->results());
    for (const auto& [tensor, constant] : body.step.constants)
      step_.constants[body.constants[tensor] = fresh()] = constant;
    for (const graph::NodeId parameter : function->parameters()) {
      const std::string& name = function->graph().node(parameter).name;
      const auto input = std::ranges::find(body.step.inputs, name, &BoundTensor::name);
      body.arguments.push_back(input == body.step.inputs.end() ? std::nullopt
                                                               : std::optional(input->tensor));
    }
    return body;
  }

  // Adds the operations of a call, and returns the results for these arguments.
  Outputs call(const Operation& caller, const FunctionRef& function, const Outputs& arguments) {
    const Body& body = bodyOf(function);
    count(caller, 1);
    std::map<Output, Output> names = body.constants;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (body.arguments[i]) names[*body.arguments[i]] = arguments[i];
    for (Operation operation : body.step.operations) {
      operation.name = caller.name + "/" + operation.name;
      for (Output& input : operation.inputs) input = names.at(input);
      for (Output& output : operation.outputs) output = names[output] = fresh();
      append(std::move(operation));
    }
    Outputs results;
    for (const BoundTensor& result : body.step.fetches)
      results.push_back(resolve(names.at(result.tensor)));
    return results;
  }

  bool unroll(const Operation& o) {
    const graph::WhileOp w = graph::WhileOp::of(o.attributes, o.inputs.size());
    const auto cond = o.attributes.find("cond");
    if (cond != o.attributes.end() && std::get<FunctionRef>(cond->second) != nullptr) return false;
    int64_t limit = w.max_iterations;
    if (w.counted) {
      const std::optional<double> wanted = constantOf(o.inputs[0]);
      if (!wanted) return false;
      limit = static_cast<int64_t>(
          std::clamp<double>(*wanted, 0, static_cast<double>(w.max_iterations)));
    }
    iterate(o, w, limit);
    return true;
  }

  void iterate(const Operation& o, const graph::WhileOp& w, int64_t limit) {
    const auto first = o.inputs.begin();
    Outputs state(first + static_cast<ptrdiff_t>(w.firstCarried()),
                  first + static_cast<ptrdiff_t>(w.firstSequence()));
    const Outputs captured(first + static_cast<ptrdiff_t>(w.firstCaptured()), o.inputs.end());
    std::vector<Outputs> slices(w.stacked + (w.keep_carried ? w.carried : 0));
    std::vector<std::optional<Output>> totals(w.summed);
    for (Outputs& of_stack : slices) of_stack.resize(static_cast<size_t>(limit));
    for (int64_t ran = 0; ran < limit; ++ran) {
      const auto at = static_cast<size_t>(w.reverse ? limit - 1 - ran : ran);
      Outputs arguments = state;
      for (size_t i = 0; i < w.sequences; ++i)
        arguments.push_back(slice(o, w.firstSequence() + i, static_cast<int64_t>(at)));
      arguments.insert(arguments.end(), captured.begin(), captured.end());
      for (size_t i = 0; w.keep_carried && i < w.carried; ++i) slices[w.stacked + i][at] = state[i];
      const Outputs results = call(o, std::get<FunctionRef>(o.attributes.at("body")), arguments);
      for (size_t i = 0; i < w.stacked; ++i) slices[i][at] = results[w.carried + i];
      for (size_t i = 0; i < w.summed; ++i)
        totals[i] = sum(o, w.firstSummed() + i, totals[i], results[w.carried + w.stacked + i]);
      state.assign(results.begin(), results.begin() + static_cast<ptrdiff_t>(w.carried));
    }
    for (size_t i = 0; i < w.carried; ++i) stands_for_[o.outputs[i]] = state[i];
    step_.constants[o.outputs[w.iterations()]] = {o.output_specs[w.iterations()],
                                                  static_cast<double>(limit), nullptr};
    for (size_t i = 0; i < slices.size(); ++i)
      stack(o, i < w.stacked ? w.firstStacked() + i : w.firstKept() + i - w.stacked, slices[i]);
    for (size_t i = 0; i < w.summed; ++i) {
      const size_t output = w.firstSummed() + i;
      if (totals[i]) {
        stands_for_[o.outputs[output]] = *totals[i];
      } else {
        step_.constants[o.outputs[output]] = {o.output_specs[output], 0, nullptr};
      }
    }
  }

  // Kernels of devices split and join elements of 4 bytes.
  static void wantFourBytes(const Operation& o, DType dtype, const char* what) {
    if (dtypeBytes(dtype) == sizeof(float)) return;
    throw Error(ErrorCode::kBadConfig, "Node '" + o.name + "': a loop on a GPU " + what +
                                           " float32 and int32, not " +
                                           std::string(dtypeName(dtype)) + "; place it on a CPU.");
  }

  // Adds slice `at` of input `input`.
  Output slice(const Operation& o, size_t input, int64_t at) {
    const TensorSpec& whole = o.input_specs[input];
    wantFourBytes(o, whole.dtype, "goes over sequences of");
    const TensorSpec part = sliceOf(whole);
    std::vector<int64_t> begin(whole.shape.dims().size(), 0);
    begin.at(0) = at;
    const Output made = fresh();
    append({o.name,
            "Slice",
            {{"begin", Shape(std::move(begin))}, {"size", part.shape}},
            {o.inputs[input]},
            {whole},
            {made},
            {part}});
    return made;
  }

  // Joins the slices, with zeros for iterations that don't run.
  void stack(const Operation& o, size_t output, Outputs slices) {
    const TensorSpec& spec = o.output_specs[output];
    if (slices.empty()) {
      step_.constants[o.outputs[output]] = {spec, 0, nullptr};
      return;
    }
    wantFourBytes(o, spec.dtype, "stacks");
    count(o, slices.size());
    std::vector<TensorSpec> specs(slices.size(), sliceOf(spec));
    if (const int64_t rest = spec.shape.dim(0) - static_cast<int64_t>(slices.size()); rest > 0) {
      std::vector<int64_t> dims = spec.shape.dims();
      dims[0] = rest;
      specs.push_back({spec.dtype, Shape(std::move(dims))});
      step_.constants[slices.emplace_back(fresh())] = {specs.back(), 0, nullptr};
    }
    append({o.name,
            "Concat",
            {{"axis", int64_t{0}}},
            std::move(slices),
            std::move(specs),
            {o.outputs[output]},
            {spec}});
  }

  // Adds `term` to the sum so far, `total`, in its memory.
  Output sum(const Operation& o, size_t output, const std::optional<Output>& total,
             const Output& term) {
    if (!total) return term;
    const TensorSpec& spec = o.output_specs[output];
    const Output made = fresh();
    append({o.name, "AddN", {}, {*total, term}, {spec, spec}, {made}, {spec}});
    return made;
  }

  LoweredStep& step_;
  int32_t last_ = 0;                     // the largest number of a node
  std::map<Output, Output> stands_for_;  // the results of a loop or branch
  std::map<const graph::Function*, Body> bodies_;
  size_t unrolled_ = 0;
  std::vector<Operation> made_;
};

}  // namespace

void inlineFunctions(LoweredStep& step, const KernelTable& kernels, DeviceType device) {
  const bool has_any = std::ranges::any_of(step.operations, [&](const Operation& operation) {
    return (operation.op == "While" || operation.op == "If") && !kernels.has(operation.op, device);
  });
  if (has_any) Inliner(step).run();
}

}  // namespace dtf::runtime
