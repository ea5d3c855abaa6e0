// Branches and loops; the semantics are in graph/standard_control_ops.cc. A function is compiled
// once, when the kernel is prepared, and called without an allocation.

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/base/check.h"
#include "common/graph/while_op.h"
#include "common/runtime/called_function.h"
#include "common/runtime/cpu_kernels_internal.h"

namespace dtf::runtime {
namespace {

// For values that may be unaligned.
template <class T>
bool isSet(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value != 0;
}

bool isTrue(DType dtype, const std::byte* scalar) {
  switch (dtype) {
    case DType::kFloat32:
      return isSet<float>(scalar);
    case DType::kUInt8:
      return isSet<uint8_t>(scalar);
    case DType::kInt32:
      return isSet<int32_t>(scalar);
    case DType::kInt64:
      return isSet<int64_t>(scalar);
    case DType::kBFloat16:
      break;
  }
  return false;
}

void copyBytes(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty() && to != from.data()) std::memcpy(to, from.data(), from.size());
}

// Owns and borrows as CalledFunction.
class IfKernel final : public Kernel {
 public:
  IfKernel(const Operation& o, const KernelTable& kernels)
      : condition_(o.input_specs[0].dtype),
        then_(std::get<graph::FunctionRef>(o.attributes.at("then_branch")), DeviceType::kCpu,
              kernels),
        else_(std::get<graph::FunctionRef>(o.attributes.at("else_branch")), DeviceType::kCpu,
              kernels) {}

  void prepare(Device& device) override {
    then_.prepare(device);
    else_.prepare(device);
  }
  size_t preparedBytes() const override { return then_.bytes() + else_.bytes(); }

  void run(const KernelArguments& a) override {
    CalledFunction& branch = isTrue(condition_, a.inputs[0]) ? then_ : else_;
    for (size_t i = 1; i < a.inputs.size(); ++i) branch.bind(i - 1, a.inputs[i]);
    branch.call();
    for (size_t i = 0; i < a.outputs.size(); ++i) copyBytes(a.outputs[i], branch.result(i));
  }

 private:
  const DType condition_;
  CalledFunction then_, else_;
};

// Owns and borrows as CalledFunction.
class WhileKernel final : public Kernel {
 public:
  WhileKernel(const Operation& o, const Processor& cpu, const KernelTable& kernels)
      : op_(graph::WhileOp::of(o.attributes, o.inputs.size())),
        add_(vectorLoops(cpu.isa).add),
        cpu_(cpu),
        body_(std::get<graph::FunctionRef>(o.attributes.at("body")), DeviceType::kCpu, kernels) {
    const auto& cond = std::get<graph::FunctionRef>(o.attributes.at("cond"));
    if (cond != nullptr) {
      cond_.emplace(cond, DeviceType::kCpu, kernels);
      condition_ = cond->resultSpecs()[0].dtype;
    }
    for (const graph::TensorSpec& spec : o.output_specs) output_bytes_.push_back(spec.bytes());
    for (size_t i = op_.firstSequence(); i < op_.firstCaptured(); ++i)
      slice_bytes_.push_back(o.input_specs[i].bytes() / slices());
    for (size_t i = 0; i < op_.carried; ++i) {
      // Two places for each: an iteration doesn't overwrite its input.
      offsets_.push_back(workspace_);
      workspace_ += 2 * padded(output_bytes_[i]);
    }
    state_.resize(op_.carried);
  }

  size_t workspaceBytes() const override { return workspace_; }
  void prepare(Device& device) override {
    body_.prepare(device);
    if (cond_) cond_->prepare(device);
  }
  size_t preparedBytes() const override { return body_.bytes() + (cond_ ? cond_->bytes() : 0); }

  void run(const KernelArguments& a) override {
    const int64_t limit = limitOf(a);
    begin(a);
    int64_t ran = 0;
    while (ran < limit && goesOn()) {
      iterate(a, op_.reverse ? limit - 1 - ran : ran, ran);
      ++ran;
    }
    finish(a, ran);
  }

 private:
  static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t slices() const { return static_cast<size_t>(op_.max_iterations); }
  size_t sliceBytes(size_t stack) const { return output_bytes_[stack] / slices(); }

  int64_t limitOf(const KernelArguments& a) const {
    if (!op_.counted) return op_.max_iterations;
    int64_t count = 0;
    std::memcpy(&count, a.inputs[0], sizeof(count));
    return std::clamp<int64_t>(count, 0, op_.max_iterations);
  }

  void begin(const KernelArguments& a) {
    for (size_t i = 0; i < op_.captured(); ++i) {
      const std::byte* const value = a.inputs[op_.firstCaptured() + i];
      body_.bind(op_.carried + op_.sequences + i, value);
      if (cond_) cond_->bind(op_.carried + i, value);
    }
    for (size_t i = 0; i < op_.carried; ++i) bindState(i, a.inputs[op_.firstCarried() + i]);
  }

  void bindState(size_t i, const std::byte* value) {
    state_[i] = value;
    body_.bind(i, value);
    if (cond_) cond_->bind(i, value);
  }

  bool goesOn() {
    if (!cond_) return true;
    cond_->call();
    return isTrue(condition_, cond_->result(0).data());
  }

  void iterate(const KernelArguments& a, int64_t slice, int64_t ran) {
    const auto at = static_cast<size_t>(slice);
    for (size_t i = 0; i < op_.sequences; ++i)
      body_.bind(op_.carried + i, a.inputs[op_.firstSequence() + i] + at * slice_bytes_[i]);
    for (size_t i = 0; op_.keep_carried && i < op_.carried; ++i) {
      const size_t kept = op_.firstKept() + i;
      copyBytes(a.outputs[kept] + at * sliceBytes(kept), {state_[i], output_bytes_[i]});
    }
    body_.call();
    for (size_t i = 0; i < op_.stacked; ++i) {
      const size_t stack = op_.firstStacked() + i;
      copyBytes(a.outputs[stack] + at * sliceBytes(stack), body_.result(op_.carried + i));
    }
    for (size_t i = 0; i < op_.summed; ++i)
      sum(a, op_.firstSummed() + i, body_.result(op_.carried + op_.stacked + i), ran == 0);
    // All are copied before one is bound: a result may be the old state of another tensor.
    std::byte* const half = a.workspace;
    for (size_t i = 0; i < op_.carried; ++i) copyBytes(half + stateOffset(i, ran), body_.result(i));
    for (size_t i = 0; i < op_.carried; ++i) bindState(i, half + stateOffset(i, ran));
  }

  size_t stateOffset(size_t i, int64_t ran) const {
    return offsets_[i] + (ran % 2 == 0 ? 0 : padded(output_bytes_[i]));
  }

  void sum(const KernelArguments& a, size_t output, std::span<const std::byte> term,
           bool is_first) const {
    if (is_first) return copyBytes(a.outputs[output], term);
    float* const total = out(a, output);
    const auto* const more = reinterpret_cast<const float*>(term.data());
    forElements(cpu_, static_cast<int64_t>(term.size() / sizeof(float)), kCopiedWork,
                [&](int64_t first, int64_t count) {
                  add_(total + first, more + first, total + first, count);
                });
  }

  // Zeros the bytes of an output from `from` on.
  void clear(const KernelArguments& a, size_t output, size_t from) const {
    if (from < output_bytes_[output])
      std::memset(a.outputs[output] + from, 0, output_bytes_[output] - from);
  }

  void finish(const KernelArguments& a, int64_t ran) const {
    for (size_t i = 0; i < op_.carried; ++i) copyBytes(a.outputs[i], {state_[i], output_bytes_[i]});
    std::memcpy(a.outputs[op_.iterations()], &ran, sizeof(ran));
    const auto ends = static_cast<size_t>(ran);
    for (size_t i = 0; i < op_.stacked; ++i)
      clear(a, op_.firstStacked() + i, ends * sliceBytes(op_.firstStacked() + i));
    for (size_t i = 0; op_.keep_carried && i < op_.carried; ++i)
      clear(a, op_.firstKept() + i, ends * sliceBytes(op_.firstKept() + i));
    if (ran > 0) return;
    for (size_t i = 0; i < op_.summed; ++i) clear(a, op_.firstSummed() + i, 0);
  }

  const graph::WhileOp op_;
  const VectorLoops::Binary add_;
  const Processor cpu_;
  CalledFunction body_;
  std::optional<CalledFunction> cond_;
  DType condition_ = DType::kUInt8;
  std::vector<size_t> output_bytes_, slice_bytes_;
  std::vector<size_t> offsets_;  // in the workspace, by carried tensor
  size_t workspace_ = 0;
  std::vector<const std::byte*> state_;  // the current place of each carried tensor
};

}  // namespace

void addControlKernels(KernelTable& table, const Processor& cpu) {
  table.addCalling("If", DeviceType::kCpu, [](const Operation& o, const KernelTable& kernels) {
    return std::make_unique<IfKernel>(o, kernels);
  });
  table.addCalling("While", DeviceType::kCpu,
                   [cpu](const Operation& o, const KernelTable& kernels) {
                     return std::make_unique<WhileKernel>(o, cpu, kernels);
                   });
}

}  // namespace dtf::runtime
