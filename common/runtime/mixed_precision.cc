#include "common/runtime/mixed_precision.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/runtime/fusion.h"

namespace dtf::runtime {
namespace {

using graph::Output;

constexpr int kAll = -1, kFromTheFifth = -2;

// The inputs and outputs of an op that may be bfloat16; the others are parameters, statistics, or
// of another type.
struct Rule {
  std::string_view op;
  bool leads;  // casts its inputs; otherwise it is bfloat16 only if all these inputs are
  std::array<int, 3> inputs;
  std::array<int, 2> outputs;
};
constexpr int kNo = 99;
constexpr std::array<Rule, 19> kRules = {{
    {"Conv2D", true, {0, kNo, kNo}, {0, kNo}},
    {"Conv2DBackpropInput", true, {1, kNo, kNo}, {0, kNo}},
    {"Conv2DBackpropFilter", true, {0, 1, kNo}, {kNo, kNo}},
    {"MatMul", true, {0, 1, kNo}, {0, kNo}},
    {"BiasAdd", false, {0, kNo, kNo}, {0, kNo}},
    {"BiasAddGrad", false, {0, kNo, kNo}, {kNo, kNo}},
    {"Relu", false, {0, kNo, kNo}, {0, kNo}},
    {"ReluGrad", false, {0, 1, kNo}, {0, kNo}},
    {"Add", false, {0, 1, kNo}, {0, kNo}},
    {"AddN", false, {kAll, kNo, kNo}, {0, kNo}},
    {"MaxPool", false, {0, kNo, kNo}, {0, kNo}},
    {"MaxPoolGrad", false, {0, kNo, kNo}, {0, kNo}},
    {"AvgPool", false, {0, kNo, kNo}, {0, kNo}},
    {"AvgPoolGrad", false, {0, kNo, kNo}, {0, kNo}},
    {"FusedBatchNorm", false, {0, kNo, kNo}, {0, kNo}},
    {"FusedBatchNormGrad", false, {0, 1, kNo}, {0, kNo}},
    {kFusedBatchNormReluOp, false, {0, 3, kNo}, {0, kNo}},
    {kFusedBatchNormReluGradOp, false, {kFromTheFifth, kNo, kNo}, {0, 3}},
    {"Normalise", false, {kNo, kNo, kNo}, {0, kNo}},
}};

const Rule* ruleOf(std::string_view op) {
  const auto at = std::ranges::find(kRules, op, &Rule::op);
  return at == kRules.end() ? nullptr : &*at;
}

template <size_t N>
bool has(const std::array<int, N>& wanted, size_t index) {
  return std::ranges::any_of(wanted, [index](int one) {
    return one == kAll || (one == kFromTheFifth && index >= 4) || one == static_cast<int>(index);
  });
}

// Borrows: the step, for one call of rewrite().
class Rewriter {
 public:
  explicit Rewriter(LoweredStep& step) : step_(step) {
    for (const BoundTensor& gradient : step.gradients) wide_.insert(gradient.tensor);
    for (auto operation = step.operations.rbegin(); operation != step.operations.rend();
         ++operation)
      if (operation->op == "AddN" && wide_.contains(operation->outputs[0]))
        wide_.insert(operation->inputs.begin(), operation->inputs.end());
    for (const Operation& operation : step.operations)
      for (size_t i = 0; i < operation.inputs.size(); ++i) {
        const Rule* const rule = ruleOf(operation.op);
        if (rule == nullptr || !rule->leads || !has(rule->inputs, i))
          wanted_wide_.insert(operation.inputs[i]);
      }
    for (const BoundTensor& fetch : step.fetches) wanted_wide_.insert(fetch.tensor);
  }

  void rewrite() {
    std::vector<Operation> given = std::move(step_.operations);
    for (Operation& operation : given) {
      const Rule* const rule = ruleOf(operation.op);
      const bool narrow = rule != nullptr && isNarrow(operation, *rule);
      for (size_t i = 0; i < operation.inputs.size(); ++i)
        read(operation, i, narrow && has(rule->inputs, i));
      if (narrow) makeNarrow(operation, *rule);
      made_.push_back(std::move(operation));
    }
    for (std::vector<BoundTensor>* const bound : {&step_.gradients, &step_.fetches})
      for (BoundTensor& tensor : *bound)
        if (narrow_.contains(tensor.tensor))
          tensor.tensor = cast(tensor.tensor, tensor.spec, DType::kFloat32);
    step_.operations = std::move(made_);
  }

 private:
  bool isNarrow(const Operation& operation, const Rule& rule) const {
    if (rule.leads) return true;
    if (operation.op == "Normalise") return !wanted_wide_.contains(operation.outputs[0]);
    // There is no such kernel for broadcast operands.
    if (operation.op == "Add" && operation.input_specs[0].shape != operation.input_specs[1].shape)
      return false;
    for (size_t i = 0; i < operation.inputs.size(); ++i)
      if (has(rule.inputs, i) && !narrow_.contains(operation.inputs[i])) return false;
    for (size_t i = 0; i < operation.outputs.size(); ++i)
      if (has(rule.outputs, i) && wide_.contains(operation.outputs[i])) return false;
    return true;
  }

  // Converts the input to the type that `operation` wants.
  void read(Operation& operation, size_t input, bool narrow) {
    graph::TensorSpec& spec = operation.input_specs[input];
    const bool is_narrow = narrow_.contains(operation.inputs[input]);
    if (spec.dtype != DType::kFloat32 || narrow == is_narrow) {
      if (is_narrow) spec.dtype = DType::kBFloat16;
      return;
    }
    const DType wanted = narrow ? DType::kBFloat16 : DType::kFloat32;
    operation.inputs[input] = cast(operation.inputs[input], spec, wanted);
    spec.dtype = wanted;
  }

  void makeNarrow(Operation& operation, const Rule& rule) {
    for (size_t i = 0; i < operation.outputs.size(); ++i) {
      if (!has(rule.outputs, i)) continue;
      // A product sums in float32 and may return that: a gradient keeps it.
      if (operation.op == "MatMul" && wide_.contains(operation.outputs[i])) continue;
      operation.output_specs[i].dtype = DType::kBFloat16;
      narrow_.insert(operation.outputs[i]);
    }
  }

  // Returns `tensor` in the other type, cast once for all its readers.
  Output cast(const Output& tensor, const graph::TensorSpec& spec, DType to) {
    const auto [at, is_new] = casts_.try_emplace(tensor);
    if (!is_new) return at->second;
    // No node of the graph has this index, nor a copy of a gradient (step_compiler.cc).
    constexpr int32_t kFirst = -1'000'000;
    at->second = {tensor.node, kFirst - static_cast<int32_t>(casts_.size())};
    const DType from = to == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32;
    made_.push_back({"cast",
                     std::string(kCastPrecisionOp),
                     {},
                     {tensor},
                     {{from, spec.shape}},
                     {at->second},
                     {{to, spec.shape}}});
    return at->second;
  }

  LoweredStep& step_;
  std::set<Output> wide_;         // gradients of variables, and their terms
  std::set<Output> wanted_wide_;  // tensors read by an operation that doesn't lead
  std::set<Output> narrow_;       // tensors in bfloat16
  std::map<Output, Output> casts_;
  std::vector<Operation> made_;
};

void allowRounding(LoweredStep& step, std::string_view how) {
  for (Operation& operation : step.operations) {
    const Rule* const rule = ruleOf(operation.op);
    if (rule != nullptr && rule->leads) operation.attributes[std::string(how)] = true;
  }
}

}  // namespace

void usePrecision(LoweredStep& step, Precision precision, const KernelTable& kernels,
                  DeviceType device) {
  switch (precision) {
    case Precision::kFloat32:
      return;
    case Precision::kTf32:
      return device == DeviceType::kGpu ? allowRounding(step, "tf32") : void();
    case Precision::kBFloat16:
      if (device == DeviceType::kCpu) return allowRounding(step, kRoundedFactors);
      if (!kernels.has(kCastPrecisionOp, device))
        throw Error(ErrorCode::kBadConfig, std::string("there are no kernels for bfloat16 on a ") +
                                               std::string(deviceTypeName(device)) +
                                               "; set train.precision to float32");
      return Rewriter(step).rewrite();
  }
}

}  // namespace dtf::runtime
