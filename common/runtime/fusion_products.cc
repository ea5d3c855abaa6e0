// Products fused with a dense layer's bias and relu. Runs after usePrecision(): these kernels are
// float32.

#include <algorithm>
#include <map>
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

// Returns the only reader of `tensor`, if it is an `op` with the tensor as its first input, not
// reshaped.
std::optional<size_t> onlyReader(const Uses& uses, const graph::Output& tensor,
                                 std::string_view op) {
  if (uses.kept(tensor) || uses.readers(tensor).size() != 1) return std::nullopt;
  const std::vector<size_t> found = uses.readersAs(tensor, op, 0);
  return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
}

}  // namespace

// Each fused operation takes the place of the last one that it replaces: the order stays
// topological, and no product lives longer than before.
void fuseProducts(LoweredStep& step, const KernelTable& kernels, DeviceType device) {
  if (!kernels.has(kFusedMatMulOp, device)) return;
  const Uses uses(step);
  std::map<size_t, Operation> fused;  // by the last operation it replaces
  std::set<size_t> covered;
  for (size_t i = 0; i < step.operations.size(); ++i) {
    const Operation& product = step.operations[i];
    if (product.op != "MatMul" || !isFloat32(product.input_specs)) continue;
    if (product.input_specs[0].shape.elements() == 0) continue;  // an empty sum, or none
    const auto bias_add = onlyReader(uses, product.outputs[0], "BiasAdd");
    if (!bias_add) continue;
    const Operation& sum = step.operations[*bias_add];
    if (!isFloat32(sum.input_specs) || !isFloat32(sum.output_specs)) continue;
    const auto relu = onlyReader(uses, sum.outputs[0], "Relu");
    const size_t last = relu ? *relu : *bias_add;
    Operation made = product;
    made.name = step.operations[last].name;
    made.op = kFusedMatMulOp;
    made.attributes["relu"] = relu.has_value();
    made.inputs.push_back(sum.inputs[1]);
    made.input_specs.push_back(sum.input_specs[1]);
    made.outputs = step.operations[last].outputs;
    made.output_specs = step.operations[last].output_specs;
    fused.emplace(last, std::move(made));
    covered.insert({i, *bias_add, last});
  }
  std::vector<Operation> operations;
  for (size_t i = 0; i < step.operations.size(); ++i) {
    const auto at = fused.find(i);
    if (at != fused.end())
      operations.push_back(std::move(at->second));
    else if (!covered.contains(i))
      operations.push_back(std::move(step.operations[i]));
  }
  step.operations = std::move(operations);
}

}  // namespace dtf::runtime
