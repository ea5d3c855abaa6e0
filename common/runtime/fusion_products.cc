// Products with what a dense layer does to them. After usePrecision(): kernels of it are float32.

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/runtime/fusion_uses.h"

namespace dtf::runtime {
namespace {

bool isFloat32(const std::vector<graph::TensorSpec>& specs) {
  return std::ranges::all_of(
      specs, [](const graph::TensorSpec& spec) { return spec.dtype == DType::kFloat32; });
}

// The only operation that reads `tensor`, where that is an `op` that reads it first and as it was made.
std::optional<size_t> onlyReader(const Uses& uses, const graph::Output& tensor,
                                 std::string_view op) {
  if (uses.kept(tensor) || uses.readers(tensor).size() != 1) return std::nullopt;
  const std::vector<size_t> found = uses.readersAs(tensor, op, 0);
  return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
}

}  // namespace

void fuseProducts(LoweredStep& step) {
  const Uses uses(step);
  std::set<size_t> covered;
  std::vector<Operation> operations;
  for (size_t i = 0; i < step.operations.size(); ++i) {
    const Operation& product = step.operations[i];
    if (product.op != "MatMul" || !isFloat32(product.input_specs)) continue;
    const auto bias_add = onlyReader(uses, product.outputs[0], "BiasAdd");
    if (!bias_add) continue;
    const Operation& sum = step.operations[*bias_add];
    if (!isFloat32(sum.input_specs) || !isFloat32(sum.output_specs)) continue;
    const auto relu = onlyReader(uses, sum.outputs[0], "Relu");
    const Operation& last = relu ? step.operations[*relu] : sum;
    Operation fused = product;
    fused.name = last.name;
    fused.op = kFusedMatMulOp;
    fused.attributes["relu"] = relu.has_value();
    fused.inputs.push_back(sum.inputs[1]);
    fused.input_specs.push_back(sum.input_specs[1]);
    fused.outputs = last.outputs;
    fused.output_specs = last.output_specs;
    operations.push_back(std::move(fused));
    covered.insert({i, *bias_add});
    if (relu) covered.insert(*relu);
  }
  for (size_t i = 0; i < step.operations.size(); ++i)
    if (!covered.contains(i)) operations.push_back(std::move(step.operations[i]));
  step.operations = std::move(operations);
  sortTopologically(step.operations);
}

}  // namespace dtf::runtime
