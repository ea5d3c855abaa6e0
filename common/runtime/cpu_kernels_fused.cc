// The fused operations of fusion.h on the CPU.

#include "common/base/check.h"
#include "common/runtime/cpu_kernels_internal.h"
#include "common/runtime/fused_softmax.h"
#include "common/runtime/fusion.h"

namespace dtf::runtime {
namespace {

// Owns: nothing but numbers.  Threads: immutable.
class FusedSoftmaxKernel final : public Kernel {
 public:
  FusedSoftmaxKernel(const Operation& o, const Processor& cpu)
      : cpu_(cpu),
        labels_(o, 3, o.input_specs[1].shape.dim(1)),
        bytes_(o.input_specs[0].dtype == DType::kUInt8) {
    const Shape& weights = o.input_specs[1].shape;
    step_.inputs = weights.dim(0);
    step_.classes = weights.dim(1);
    step_.batch = o.input_specs[3].shape.elements();
    step_.scale = bytes_ ? static_cast<float>(o.attributeOr<double>("scale", 1)) : 1.0f;
    step_.gradient_scale = static_cast<float>(o.attributeOr<double>("gradient_scale", 1));
    for (size_t i = 0; i < kFusedSoftmaxResults.size(); ++i) {
      wanted_[i] = o.attributeOr<bool>(kFusedSoftmaxResults[i], false);
    }
  }

  size_t workspaceBytes() const override {
    return fusedSoftmaxWorkspaceBytes(step_.batch, step_.inputs, step_.classes) +
           labels_.workspaceBytes();
  }

  void run(const KernelArguments& a) override {
    FusedSoftmaxStep step = step_;
    step.bytes = bytes_ ? in<uint8_t>(a, 0) : nullptr;
    step.floats = bytes_ ? nullptr : in(a, 0);
    step.weights = in(a, 1);
    step.bias = in(a, 2);
    const size_t own = fusedSoftmaxWorkspaceBytes(step.batch, step.inputs, step.classes);
    step.labels = labels_.read(a.inputs[3], a.workspace + own);
    step.workspace = reinterpret_cast<float*>(a.workspace);
    float** const results[] = {&step.loss, &step.accuracy, &step.logits_gradient,
                               &step.weights_gradient, &step.bias_gradient};
    size_t next = 0;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (wanted_[i]) *results[i] = out(a, next++);
    }
    fusedSoftmax(cpu_, step);
  }

 private:
  Processor cpu_;
  LabelReader labels_;
  bool bytes_;
  std::array<bool, kFusedSoftmaxResults.size()> wanted_{};
  FusedSoftmaxStep step_;
};

}  // namespace

void addFusedKernels(KernelTable& table, const Processor& cpu) {
  table.add(std::string(kFusedSoftmaxOp), DeviceType::kCpu, [cpu](const Operation& operation) {
    return std::make_unique<FusedSoftmaxKernel>(operation, cpu);
  });
}

}  // namespace dtf::runtime
