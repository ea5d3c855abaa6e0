// The layers of fusion.h that end in a pooling.

#include <optional>

#include "common/base/check.h"
#include "common/graph/window.h"
#include "common/runtime/fusion_uses.h"

namespace dtf::runtime {
namespace {

using graph::Output;

// Matches one MaxPool with its neighbours.
// Borrows: `uses`, for one call of match().
class PoolMatcher {
 public:
  explicit PoolMatcher(const Uses& uses) : uses_(uses) {}

  bool match(size_t pool, bool first_layers) {
    pool_ = pool;
    if (!matchForward() || !matchBackward()) return false;
    if (first_layers) matchConvolution();
    return true;
  }

  Operation forward() const {
    const Operation &pool = operation(pool_), &bias_add = operation(bias_add_);
    Operation made = {pool.name,        std::string(kFusedPoolOp), pool.attributes,
                      bias_add.inputs,  bias_add.input_specs,      pool.outputs,
                      pool.output_specs};
    if (convolution_) {
      const Operation& convolution = operation(*convolution_);
      made.name = convolution.name;
      made.op = kFusedConvPoolOp;
      made.inputs.insert(made.inputs.begin(), convolution.inputs[0]);
      made.inputs[1] = convolution.inputs[1];
      made.input_specs.insert(made.input_specs.begin(), convolution.input_specs[0]);
      made.input_specs[1] = convolution.input_specs[1];
      addConvolution(convolution.attributes, made);
    }
    return made;
  }

  std::optional<Operation> backward() const {
    if (!pool_grad_) return std::nullopt;
    const Operation &pool_grad = operation(*pool_grad_), &relu_grad = operation(*relu_grad_);
    Operation made = {pool_grad.name,        std::string(kFusedPoolGradOp), pool_grad.attributes,
                      pool_grad.inputs,      pool_grad.input_specs,         relu_grad.outputs,
                      relu_grad.output_specs};
    if (filter_grad_) {
      const Operation& filter_grad = operation(*filter_grad_);
      made.name = filter_grad.name;
      made.op = kFusedConvPoolGradOp;
      made.inputs.push_back(filter_grad.inputs[0]);
      made.input_specs.push_back(filter_grad.input_specs[0]);
      made.outputs = filter_grad.outputs;
      made.output_specs = filter_grad.output_specs;
      addConvolution(filter_grad.attributes, made);
    }
    if (bias_grad_) {
      made.attributes["bias_gradient"] = true;
      made.outputs.push_back(operation(*bias_grad_).outputs[0]);
      made.output_specs.push_back(operation(*bias_grad_).output_specs[0]);
    }
    return made;
  }

  void cover(std::set<size_t>& covered) const {
    covered.insert({pool_, relu_, bias_add_});
    for (const auto& index : {pool_grad_, relu_grad_, bias_grad_, convolution_, filter_grad_}) {
      if (index) covered.insert(*index);
    }
  }

 private:
  const Operation& operation(size_t index) const { return uses_.operation(index); }
  const Output& outputOf(size_t index, size_t output = 0) const {
    DTF_CHECK(output < operation(index).outputs.size());
    return operation(index).outputs[output];
  }
  // Returns the readers of a tensor that is not read from outside; nullptr if it is.
  const std::vector<size_t>* innerReaders(const Output& tensor) const {
    return uses_.kept(tensor) ? nullptr : &uses_.readers(tensor);
  }
  // Returns the only reader, of type `op`, with the tensor as input `input`.
  std::optional<size_t> onlyReader(const Output& tensor, std::string_view op, size_t input) const {
    const std::vector<size_t>* const readers = innerReaders(tensor);
    if (readers == nullptr || readers->size() != 1) return std::nullopt;
    const std::vector<size_t> found = uses_.readersAs(tensor, op, input);
    return found.empty() ? std::nullopt : std::optional(found[0]);
  }

  bool matchForward() {
    const Operation& pool = operation(pool_);
    if (pool.output_specs[1].dtype != DType::kUInt8) return false;
    const graph::Window window = graph::poolingWindow(pool.attributes);
    if (window.height.size * window.width.size > kFusedPoolClosed) return false;
    const auto relu = uses_.producer(pool, 0, "Relu");
    if (!relu) return false;
    const auto bias_add = uses_.producer(operation(*relu), 0, "BiasAdd");
    if (!bias_add || !onlyReader(outputOf(*bias_add), "Relu", 0)) return false;
    relu_ = *relu, bias_add_ = *bias_add;
    return !uses_.kept(outputOf(pool_, 1)) && !uses_.kept(outputOf(relu_));
  }

  // Matches the forward operation alone, or with its whole gradient.
  bool matchBackward() {
    if (uses_.readers(outputOf(pool_, 1)).empty())
      return uses_.readers(outputOf(relu_)).size() == 1;
    pool_grad_ = onlyReader(outputOf(pool_, 1), "MaxPoolGrad", 1);
    if (!pool_grad_) return false;
    relu_grad_ = onlyReader(outputOf(*pool_grad_), "ReluGrad", 0);
    if (!relu_grad_ || operation(*relu_grad_).inputs[1] != outputOf(relu_) ||
        !uses_.readsAsMade(operation(*relu_grad_), 1)) {
      return false;
    }
    if (uses_.readers(outputOf(relu_)).size() != 2) return false;  // MaxPool, ReluGrad
    const std::vector<size_t> bias = uses_.readersAs(outputOf(*relu_grad_), "BiasAddGrad", 0);
    if (bias.size() == 1) bias_grad_ = bias[0];
    return true;
  }

  static void addConvolution(const graph::Attributes& attributes, Operation& made) {
    for (const auto& [name, value] : attributes) {
      made.attributes[std::string(kFusedConvPrefix) + name] = value;
    }
  }

  // For a first layer: matches the convolution, and the gradient of its filter if that is the
  // gradient's only reader.
  void matchConvolution() {
    const Output& input = operation(bias_add_).inputs[0];
    const auto convolution = uses_.producer(operation(bias_add_), 0, "Conv2D");
    if (!convolution || !onlyReader(input, "BiasAdd", 0)) return;
    const Shape& images = operation(*convolution).input_specs[0].shape;
    if (images.dim(3) > kFusedConvChannelsMax) return;
    convolution_ = convolution;
    if (!relu_grad_) return;
    const Output& back = outputOf(*relu_grad_);
    const std::vector<size_t> filters = uses_.readersAs(back, "Conv2DBackpropFilter", 1);
    const size_t readers = (bias_grad_ ? 1 : 0) + filters.size();
    if (filters.size() == 1 && !uses_.kept(back) && uses_.readers(back).size() == readers) {
      filter_grad_ = filters[0];
    }
  }

  const Uses& uses_;
  size_t pool_ = 0, relu_ = 0, bias_add_ = 0;
  std::optional<size_t> pool_grad_, relu_grad_, bias_grad_, convolution_, filter_grad_;
};

}  // namespace

void fusePooling(const LoweredStep& step, const Uses& uses, bool first_layers,
                 std::set<size_t>& covered, std::vector<Operation>& fused) {
  for (size_t i = 0; i < step.operations.size(); ++i) {
    if (step.operations[i].op != "MaxPool") continue;
    PoolMatcher matcher(uses);
    if (!matcher.match(i, first_layers)) continue;
    fused.push_back(matcher.forward());
    if (auto backward = matcher.backward()) fused.push_back(std::move(*backward));
    matcher.cover(covered);
  }
}

}  // namespace dtf::runtime
