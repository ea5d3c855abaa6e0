// Convolutions by cuDNN.

#include "gpu/convolution.h"

#include <algorithm>
#include <limits>

#include "gpu/convolution_graph.h"
#include "gpu/kernel.h"
#include "gpu/libraries.h"
#include "gpu/transpose.h"
#include "gpu/trial.h"

namespace dtf::gpu {
namespace {

// Engines with a larger workspace are skipped: their speed isn't worth the memory.
constexpr size_t kPlanWorkspaceBytesMax = size_t{512} << 20;

std::vector<int64_t> tensorIds() {
  return {static_cast<int64_t>(TensorId::kImage), static_cast<int64_t>(TensorId::kFilter),
          static_cast<int64_t>(TensorId::kOut)};
}

// Owns: the plan, and the binding of its tensors.
// Transposes the filter into the workspace, or out of it if the pass computes the filter.
class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const Operation& o, Pass pass)
      : c_(o, pass), pass_(pass), rounding_(roundingOf(o)), name_(o.name) {}

  void prepare(Device& device) override {
    if (c_.empty() || c_.imageElements() == 0) return;
    Plan& chosen = device.libraries().plans[key()];
    if (!chosen) chosen = choose(device);
    plan_ = chosen;
    plan_workspace_ = device.workspace(plan_.workspaceBytes());
  }

  void launch(Device& device, const Arguments& a) override {
    if (!plan_) return clear(device, a);
    const std::byte* image = a.inputs[0];
    const std::byte* out = a.inputs[1];
    if (pass_ == Pass::kForward) {
      giveFilter(device, a.in(1), a.workspace);
      out = a.outputs[0];
    } else if (pass_ == Pass::kBackpropInput) {
      giveFilter(device, a.in(0), a.workspace);
      image = a.outputs[0];
    }
    const Descriptor bound = plan_.bind(
        tensorIds(), {const_cast<std::byte*>(image), a.workspace, const_cast<std::byte*>(out)},
        plan_workspace_);
    plan_.execute(device.libraries().dnn, bound);
    device.countLaunch();
    if (pass_ == Pass::kBackpropFilter) takeFilter(device, a.workspace, a.out(0));
  }

  size_t workspaceBytes() const override { return bytesFor(c_.filterElements()); }
  const char* way() const override { return "cuDNN"; }

 private:
  // Writes the filter with output channels first, in the images' type.
  void giveFilter(Device& device, const float* from, std::byte* to) const {
    if (c_.type == Type::kBFloat16) {
      transposeMatrix(device, from, reinterpret_cast<BFloat16*>(to), c_.taps(), c_.out_channels);
    } else {
      transposeMatrix(device, from, reinterpret_cast<float*>(to), c_.taps(), c_.out_channels);
    }
  }
  void takeFilter(Device& device, const std::byte* from, float* to) const {
    if (c_.type == Type::kBFloat16) {
      transposeMatrix(device, reinterpret_cast<const BFloat16*>(from), to, c_.out_channels,
                      c_.taps());
    } else {
      transposeMatrix(device, reinterpret_cast<const float*>(from), to, c_.out_channels, c_.taps());
    }
  }

  // Zeros the output: an empty sum is 0.
  void clear(Device& device, const Arguments& a) const {
    const size_t bytes = pass_ == Pass::kForward ? bytesFor(c_.outElements())
                         : pass_ == Pass::kBackpropInput
                             ? bytesFor(c_.imageElements())
                             : static_cast<size_t>(c_.filterElements()) * sizeof(float);
    if (bytes == 0) return;
    check(cudaMemsetAsync(a.outputs[0], 0, bytes, device.stream()), "clearing a convolution");
  }

  // Returns a text of all properties that plans depend on: convolutions with equal texts share a
  // plan.
  std::string key() const {
    const Axis &h = c_.window.height, &w = c_.window.width;
    std::string text;
    for (const int64_t part : {static_cast<int64_t>(pass_),
                               static_cast<int64_t>(rounding_),
                               static_cast<int64_t>(c_.type),
                               c_.batch,
                               c_.height,
                               c_.width,
                               c_.channels,
                               c_.out_height,
                               c_.out_width,
                               c_.out_channels,
                               c_.groups,
                               h.size,
                               h.stride,
                               h.dilation,
                               h.before,
                               h.after,
                               w.size,
                               w.stride,
                               w.dilation,
                               w.before,
                               w.after})
      text += std::to_string(part) + " ";
    return text;
  }

  // Returns the plan chosen earlier on such a device, or the fastest of those within the allowed
  // rounding.
  Plan choose(Device& device) const {
    const std::vector<Descriptor> configs = offered(device);
    PlanCache& kept = *device.libraries().kept;
    const std::string key = "convolution " + this->key();
    if (const std::optional<size_t> known = kept.find(key); known && *known < configs.size()) {
      Plan plan;
      if (succeeds([&] { plan = planOf(device, configs[*known]); }) && plan) return plan;
    }
    const Scratch image(device, bytesFor(c_.imageElements()));
    const Scratch filter(device, bytesFor(c_.filterElements()));
    const Scratch out(device, bytesFor(c_.outElements()));
    const std::vector<void*> tensors = {image.get(), filter.get(), out.get()};
    Plan chosen;
    size_t tried = 0, way = 0;
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < configs.size() && tried < kTrialsMax; ++i) {
      Plan plan;
      double taken = best;
      const bool can = succeeds([&] {
        plan = planOf(device, configs[i]);
        if (plan) taken = timeOf(device, plan, tensors);
      });
      if (!can || !plan) continue;
      ++tried;
      if (taken >= best) continue;
      best = taken;
      way = i;
      chosen = std::move(plan);
    }
    if (!chosen) refuse();
    kept.add(key, way);
    return chosen;
  }

  // Runs `f`, and returns whether it succeeded. An engine that cuDNN rejects here, or without
  // enough memory, is skipped.
  template <class F>
  static bool succeeds(const F& f) {
    try {
      f();
      return true;
    } catch (const PluginError& error) {
      if (error.code() == DTF_PLUGIN_UNAVAILABLE && cudaPeekAtLastError() != cudaSuccess)
        throw;  // the device has failed
      return false;
    }
  }

  // Returns an empty plan if its engine needs too much memory.
  static Plan planOf(Device& device, const Descriptor& config) {
    Plan plan(config, device.libraries().dnn);
    return plan.workspaceBytes() > kPlanWorkspaceBytesMax ? Plan() : plan;
  }

  // Returns cuDNN's configurations, in the same order each time.
  std::vector<Descriptor> offered(Device& device) const {
    std::vector<Descriptor> configs =
        engineConfigs(convolutionGraph(c_, pass_, device.libraries().dnn), {});
    std::erase_if(configs,
                  [this](const Descriptor& config) { return !keepsPromise(config, rounding_); });
    return configs;
  }

  [[noreturn]] void refuse() const {
    throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                      "Node '" + name_ + "': cuDNN has no engine for this convolution in " +
                          (c_.type == Type::kBFloat16     ? "bfloat16"
                           : rounding_ == Rounding::kTf32 ? "TF32"
                                                          : "float32") +
                          ". Place the node on a CPU, or choose another train.precision.");
  }

  // Returns the seconds of some runs.
  static double timeOf(Device& device, const Plan& plan, const std::vector<void*>& tensors) {
    const Scratch workspace(device, plan.workspaceBytes());
    const Descriptor bound = plan.bind(tensorIds(), tensors, workspace.get());
    return timedRuns(device, [&] { plan.execute(device.libraries().dnn, bound); });
  }

  size_t bytesFor(int64_t elements) const {
    return static_cast<size_t>(elements * bytesOf(c_.type));
  }

  const Convolution c_;
  const Pass pass_;
  const Rounding rounding_;
  const std::string name_;
  Plan plan_;
  std::byte* plan_workspace_ = nullptr;
};

template <Pass kPass>
std::unique_ptr<Kernel> convolution(const Operation& o) {
  return std::make_unique<ConvolutionKernel>(o, kPass);
}

}  // namespace

void addConvolutionKernels(KernelTable& table) {
  table["Conv2D"] = convolution<Pass::kForward>;
  table["Conv2DBackpropInput"] = convolution<Pass::kBackpropInput>;
  table["Conv2DBackpropFilter"] = convolution<Pass::kBackpropFilter>;
}

}  // namespace dtf::gpu
