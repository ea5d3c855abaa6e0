#include "common/runtime/fusion.h"

#include <algorithm>
#include <optional>
#include <set>

#include "common/runtime/fused_softmax.h"
#include "common/runtime/fusion_uses.h"

namespace dtf::runtime {
namespace {

using graph::Output;

// Matches one SparseSoftmaxCrossEntropyWithLogits with its neighbours.
// Borrows: `step` and `uses`, for one call of match().
class SoftmaxMatcher {
 public:
  SoftmaxMatcher(const LoweredStep& step, const Uses& uses) : step_(step), uses_(uses) {}

  // Returns the fused operation, and puts the indices of the replaced ones into `covered`.
  std::optional<Operation> match(size_t cross_entropy, std::set<size_t>& covered) {
    if (!matchForward(cross_entropy) || !matchLosses() || !matchGradients()) return std::nullopt;
    matchNormalise();
    covered.insert(group_.begin(), group_.end());
    return std::move(fused_);
  }

 private:
  const Operation& operation(size_t index) const { return uses_.operation(index); }
  bool inGroup(size_t index) const { return group_.contains(index); }
  // Returns whether only the group reads a tensor that the fused operation doesn't produce.
  bool isInner(const Output& tensor) const {
    const std::vector<size_t>& readers = uses_.readers(tensor);
    return !uses_.kept(tensor) && std::all_of(readers.begin(), readers.end(),
                                              [this](size_t reader) { return inGroup(reader); });
  }
  // At most one reader of a kind is fused: the fused operation produces each result only once.
  static std::optional<size_t> only(const std::vector<size_t>& found) {
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }

  bool matchForward(size_t index) {
    const Operation& cross_entropy = operation(index);
    const auto bias_add = uses_.producer(cross_entropy, 0, "BiasAdd");
    if (!bias_add) return false;
    const auto product = uses_.producer(operation(*bias_add), 0, "MatMul");
    if (!product) return false;
    const Operation& matmul = operation(*product);
    const Shape& weights = matmul.input_specs[1].shape;
    if (matmul.attributeOr<bool>("transpose_a", false) ||
        matmul.attributeOr<bool>("transpose_b", false) ||
        weights.dim(1) > kFusedSoftmaxClassesMax || weights.elements() == 0 ||
        matmul.output_specs[0].shape.elements() == 0) {
      return false;
    }
    group_ = {index, *bias_add, *product};
    cross_entropy_ = index, bias_add_ = *bias_add, matmul_ = *product;
    fused_.name = cross_entropy.name;
    fused_.op = kFusedSoftmaxOp;
    fused_.inputs = {matmul.inputs[0], matmul.inputs[1], operation(bias_add_).inputs[1],
                     cross_entropy.inputs[1]};
    fused_.input_specs = {matmul.input_specs[0], matmul.input_specs[1],
                          operation(bias_add_).input_specs[1], cross_entropy.input_specs[1]};
    return true;
  }

  bool matchLosses() {
    const Output losses = operation(cross_entropy_).outputs[0];
    const Output logits = operation(bias_add_).outputs[0];
    addResult("loss", only(uses_.readersAs(losses, "Mean", 0)));
    const auto accuracy = only(uses_.readersAs(logits, "Accuracy", 0));
    const bool same_labels =
        accuracy && operation(*accuracy).inputs[1] == operation(cross_entropy_).inputs[1] &&
        operation(*accuracy).input_specs[1] == operation(cross_entropy_).input_specs[1];
    addResult("accuracy", same_labels ? accuracy : std::nullopt);
    return isInner(losses) && isInner(logits) && isInner(operation(matmul_).outputs[0]);
  }

  bool matchGradients() {
    const Output backprop = operation(cross_entropy_).outputs[1];
    const auto scaled = only(uses_.readersAs(backprop, "MulRows", 1));
    if (!scaled) return isInner(backprop);  // forward only
    const auto factor = step_.constants.find(operation(*scaled).inputs[0]);
    if (factor == step_.constants.end() || factor->second.elements != nullptr) return false;
    fused_.attributes["gradient_scale"] = factor->second.value;
    group_.insert(*scaled);
    if (!isInner(backprop)) return false;
    const Output gradient = operation(*scaled).outputs[0];
    std::optional<size_t> weights;
    for (const size_t reader : uses_.readersAs(gradient, "MatMul", 1)) {
      const Operation& matmul = operation(reader);
      if (matmul.inputs[0] == fused_.inputs[0] && matmul.input_specs[0] == fused_.input_specs[0] &&
          matmul.attributeOr<bool>("transpose_a", false) &&
          !matmul.attributeOr<bool>("transpose_b", false)) {
        weights = reader;
      }
    }
    const auto bias = only(uses_.readersAs(gradient, "BiasAddGrad", 0));
    if (weights) group_.insert(*weights);
    if (bias) group_.insert(*bias);
    if (!isInner(gradient)) addResult("logits_gradient", scaled);
    addResult("weights_gradient", weights);
    addResult("bias_gradient", bias);
    return true;
  }

  void addResult(std::string_view result, std::optional<size_t> index) {
    if (!index) return;
    group_.insert(*index);
    fused_.attributes[std::string(result)] = true;
    fused_.outputs.push_back(operation(*index).outputs[0]);
    fused_.output_specs.push_back(operation(*index).output_specs[0]);
  }

  // Fuses the conversion from bytes, if no other operation reads the floats.
  void matchNormalise() {
    // A Reshape in between is allowed: elements keep their order.
    const auto normalise = uses_.producer(fused_.inputs[0], "Normalise");
    if (!normalise || !isInner(fused_.inputs[0])) return;
    const Operation& bytes = operation(*normalise);
    group_.insert(*normalise);
    fused_.inputs[0] = bytes.inputs[0];
    fused_.input_specs[0].dtype = DType::kUInt8;
    fused_.attributes["scale"] = bytes.attributeOr<double>("scale", 1);
  }

  const LoweredStep& step_;
  const Uses& uses_;
  size_t cross_entropy_ = 0, bias_add_ = 0, matmul_ = 0;
  std::set<size_t> group_;  // indices of the operations to replace
  Operation fused_;
};

}  // namespace

void fuse(LoweredStep& step, const KernelTable& kernels, DeviceType device) {
  std::set<size_t> covered;
  std::vector<Operation> fused;
  const Uses uses(step);
  if (kernels.has(kFusedSoftmaxOp, device)) {
    for (size_t i = 0; i < step.operations.size(); ++i) {
      if (step.operations[i].op != "SparseSoftmaxCrossEntropyWithLogits") continue;
      if (auto operation = SoftmaxMatcher(step, uses).match(i, covered)) {
        fused.push_back(std::move(*operation));
      }
    }
  }
  if (kernels.has(kFusedPoolOp, device) && kernels.has(kFusedPoolGradOp, device)) {
    const bool first_layers =
        kernels.has(kFusedConvPoolOp, device) && kernels.has(kFusedConvPoolGradOp, device);
    fusePooling(step, uses, first_layers, covered, fused);
  }
  if (kernels.has(kFusedBatchNormReluOp, device) && kernels.has(kFusedBatchNormReluGradOp, device))
    fuseBatchNorm(step, uses, covered, fused);
  for (size_t i = 0; i < step.operations.size(); ++i) {
    if (!covered.contains(i)) fused.push_back(std::move(step.operations[i]));
  }
  step.operations = std::move(fused);
  sortTopologically(step.operations);
}

}  // namespace dtf::runtime
