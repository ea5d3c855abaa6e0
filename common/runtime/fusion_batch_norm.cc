// _FusedBatchNormRelu and its gradient: see fusion.h.

#include <optional>

#include "common/runtime/fusion_uses.h"

namespace dtf::runtime {
namespace {

using graph::Output;

// Borrows: all constructor arguments, for its life.
class BatchNormFuser {
 public:
  BatchNormFuser(const Uses& uses, std::set<size_t>& covered, std::vector<Operation>& fused)
      : uses_(uses), covered_(covered), fused_(fused) {}

  // Fuses `relu` with the operations before it.
  void fuseForward(size_t relu) {
    const auto add = onlyRead(relu, 0, "Add");
    std::optional<size_t> norm = onlyRead(relu, 0, "FusedBatchNorm");
    std::optional<size_t> residual;  // the index of the residual among the inputs of `add`
    if (add && sameShapes(uses_.operation(*add)))
      for (const size_t input : {0, 1})
        if (!norm) {
          norm = onlyRead(*add, input, "FusedBatchNorm");
          if (norm && uses_.dependsOn(uses_.operation(*add).inputs[1 - input], *norm))
            norm = std::nullopt;  // it depends on the norm's statistics
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

  // Fuses `gradient` of a normalisation with the gradient of the relu behind it, and the sum of
  // that one's two terms.
  void fuseBackward(size_t gradient) {
    const Operation& of_norm = uses_.operation(gradient);
    const auto of_relu = uses_.producer(of_norm, 0, "ReluGrad");
    const auto norm = uses_.producer(of_norm.inputs[3], "FusedBatchNorm");
    if (!of_relu || !norm || covered_.contains(*of_relu)) return;
    const Operation& relu = uses_.operation(*of_relu);
    const Output& passed = relu.outputs[0];
    if (uses_.kept(passed) || relu.input_specs[0] != of_norm.input_specs[1]) return;
    for (size_t input = 1; input < of_norm.inputs.size(); ++input)
      if (uses_.dependsOn(of_norm.inputs[input], *of_relu)) return;
    if (uses_.dependsOn(uses_.operation(*norm).inputs[2], *of_relu)) return;
    Operation made{of_norm.name,
                   std::string(kFusedBatchNormReluGradOp),
                   of_norm.attributes,
                   {},
                   {},
                   of_norm.outputs,
                   of_norm.output_specs};
    const auto read = [&made](const Operation& from, size_t input) {
      made.inputs.push_back(from.inputs[input]);
      made.input_specs.push_back(from.input_specs[input]);
    };
    for (const size_t parameter : {2, 3, 4}) read(of_norm, parameter);  // scale, mean, inverse
    read(uses_.operation(*norm), 2);                                    // offset
    read(of_norm, 1);                                                   // x
    const bool from_x = isReluOf(relu.inputs[1], *norm);
    made.attributes["mask_from_x"] = from_x;
    if (!from_x) read(relu, 1);
    const auto sum = onlyRead(*of_relu, 0, "AddN");
    if (sum && !covered_.contains(*sum) && uses_.operation(*sum).inputs.size() == 2) {
      for (const size_t term : {0, 1}) read(uses_.operation(*sum), term);
      covered_.insert(*sum);
    } else {
      read(relu, 0);
    }
    if (uses_.readers(passed).size() > 1) {
      made.outputs.push_back(passed);
      made.output_specs.push_back(relu.output_specs[0]);
    }
    covered_.insert({gradient, *of_relu});
    fused_.push_back(std::move(made));
  }

 private:
  // Returns the operation of type `op` that produces input `input` of `reader`, if `reader` is its
  // only reader.
  std::optional<size_t> onlyRead(size_t reader, size_t input, std::string_view op) const {
    const Output& tensor = uses_.operation(reader).inputs[input];
    if (uses_.kept(tensor) || uses_.readers(tensor).size() != 1) return std::nullopt;
    return uses_.producer(uses_.operation(reader), input, op);
  }
  // Returns whether y of the normalisation is read, not a statistic of the same shape.
  bool makesFirst(size_t norm, size_t relu, const std::optional<size_t>& add) const {
    const Output& y = uses_.operation(norm).outputs[0];
    const auto reads = [&](size_t reader) {
      return std::ranges::count(uses_.operation(reader).inputs, y) == 1;
    };
    return reads(relu) || (add && reads(*add));
  }
  // Returns whether `y` is the relu of the normalisation's result alone: then x determines the
  // mask.
  bool isReluOf(const Output& y, size_t norm) const {
    const auto relu = uses_.producer(y, "Relu");
    return relu && uses_.readsAsMade(uses_.operation(*relu), 0) &&
           uses_.operation(*relu).inputs[0] == uses_.operation(norm).outputs[0];
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
