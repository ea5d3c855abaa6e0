// _FusedBatchNormRelu and its gradient: see fusion.h.

#include <optional>

#include "common/runtime/fusion_uses.h"

namespace dtf::runtime {
namespace {

using graph::Output;

// Borrows: all that it is given, for its life.
class BatchNormFuser {
 public:
  BatchNormFuser(const Uses& uses, std::set<size_t>& covered, std::vector<Operation>& fused)
      : uses_(uses), covered_(covered), fused_(fused) {}

  // `relu` with what comes before it.
  void fuseForward(size_t relu) {
    const auto add = onlyRead(relu, 0, "Add");
    std::optional<size_t> norm = onlyRead(relu, 0, "FusedBatchNorm");
    std::optional<size_t> residual;  // which input of `add`
    if (add && sameShapes(uses_.operation(*add)))
      for (const size_t input : {0, 1})
        if (!norm) {
          norm = onlyRead(*add, input, "FusedBatchNorm");
          if (norm) residual = 1 - input;
        }
    if (!norm || covered_.contains(*norm) || !makesFirst(*norm, relu, add)) return;
    Operation made = uses_.operation(*norm);
    made.op = kFusedBatchNormReluOp;
    if (residual) {
      made.inputs.push_back(uses_.operation(*add).inputs[*residual]);
      made.input_specs.push_back(uses_.operation(*add).input_specs[*residual]);
      covered_.insert(*add);
    }
    made.outputs[0] = uses_.operation(relu).outputs[0];
    covered_.insert({relu, *norm});
    fused_.push_back(std::move(made));
  }

  // `gradient` of a normalisation with the one of the relu behind it.
  void fuseBackward(size_t gradient) {
    const Operation& of_norm = uses_.operation(gradient);
    const auto of_relu = uses_.producer(of_norm, 0, "ReluGrad");
    if (!of_relu || covered_.contains(*of_relu)) return;
    const Operation& relu = uses_.operation(*of_relu);
    const Output& passed = relu.outputs[0];
    if (uses_.kept(passed) || relu.input_specs[0] != of_norm.input_specs[1]) return;
    Operation made = of_norm;
    made.op = kFusedBatchNormReluGradOp;
    made.inputs[0] = relu.inputs[0];
    made.inputs.insert(made.inputs.begin() + 1, relu.inputs[1]);
    made.input_specs.insert(made.input_specs.begin() + 1, relu.input_specs[1]);
    if (uses_.readers(passed).size() > 1) {
      made.outputs.push_back(passed);
      made.output_specs.push_back(relu.output_specs[0]);
    }
    covered_.insert({gradient, *of_relu});
    fused_.push_back(std::move(made));
  }

 private:
  // The operation of type `op` that makes what `reader` reads there, and nobody else does.
  std::optional<size_t> onlyRead(size_t reader, size_t input, std::string_view op) const {
    const Output& tensor = uses_.operation(reader).inputs[input];
    if (uses_.kept(tensor) || uses_.readers(tensor).size() != 1) return std::nullopt;
    return uses_.producer(uses_.operation(reader), input, op);
  }
  // Whether what is read of the normalisation is y, not a statistic of the same shape.
  bool makesFirst(size_t norm, size_t relu, const std::optional<size_t>& add) const {
    const Output& y = uses_.operation(norm).outputs[0];
    const auto reads = [&](size_t reader) {
      return std::ranges::count(uses_.operation(reader).inputs, y) == 1;
    };
    return reads(relu) || (add && reads(*add));
  }
  static bool sameShapes(const Operation& add) {
    return add.input_specs[0] == add.input_specs[1] && add.inputs[0] != add.inputs[1];
  }

  const Uses& uses_;
  std::set<size_t>& covered_;
  std::vector<Operation>& fused_;
};

}  // namespace

void fuseBatchNorm(const LoweredStep& step, const Uses& uses, std::set<size_t>& covered,
                   std::vector<Operation>& fused) {
  BatchNormFuser fuser(uses, covered, fused);
  for (size_t i = 0; i < step.operations.size(); ++i) {
    if (covered.contains(i)) continue;
    if (step.operations[i].op == "Relu") fuser.fuseForward(i);
    if (step.operations[i].op == "FusedBatchNormGrad") fuser.fuseBackward(i);
  }
}

}  // namespace dtf::runtime
