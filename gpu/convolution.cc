// The ops of convolutions by cuDNN.

#include "gpu/convolution.h"

#include <algorithm>
#include <limits>

#include "gpu/convolution_graph.h"
#include "gpu/kernel.h"
#include "gpu/libraries.h"
#include "gpu/transpose.h"

namespace dtf::gpu {
namespace {

// How many of the heuristics' configurations are timed, and how often each.
constexpr size_t kCandidatesMax = 8;
constexpr int kTimedRuns = 5;
// An engine that wants more is left out: its speed isn't worth the memory.
constexpr size_t kPlanWorkspaceBytesMax = size_t{512} << 20;

// Events on a stream, to time what lies between them.
class Stopwatch {
 public:
  explicit Stopwatch(Stream stream) : stream_(stream) {
    check(cudaEventCreate(&begin_), "making an event");
    check(cudaEventCreate(&end_), "making an event");
  }
  ~Stopwatch() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  template <class F>
  float milliseconds(const F& f) {
    check(cudaEventRecord(begin_, stream_), "timing a plan");
    f();
    check(cudaEventRecord(end_, stream_), "timing a plan");
    check(cudaEventSynchronize(end_), "timing a plan");
    float taken = 0;
    check(cudaEventElapsedTime(&taken, begin_, end_), "timing a plan");
    return taken;
  }

 private:
  const Stream stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Memory of a plan while it is timed.
class Scratch {
 public:
  Scratch(Device& device, size_t bytes)
      : device_(device), memory_(device.allocate(std::max<size_t>(bytes, 1))) {}
  ~Scratch() { device_.deallocate(memory_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* get() const { return memory_; }

 private:
  Device& device_;
  std::byte* const memory_;
};

std::vector<int64_t> tensorIds() {
  return {static_cast<int64_t>(TensorId::kImage), static_cast<int64_t>(TensorId::kFilter),
          static_cast<int64_t>(TensorId::kOut)};
}

// Owns: the plan, and the binding of its tensors.
// The filter is transposed into the workspace, or from it where the pass makes it.
class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const Operation& o, Pass pass) : c_(o, pass), pass_(pass), name_(o.name) {}

  void prepare(Device& device) override {
    if (c_.empty() || c_.imageElements() == 0) return;
    const Descriptor graph = convolutionGraph(c_, pass_, device.libraries().dnn);
    choose(device, graph);
    plan_workspace_ = device.workspace(plan_.workspaceBytes());
  }

  void launch(Device& device, const Arguments& a) override {
    if (!plan_) return clear(device, a);
    const int64_t taps = c_.taps(), outs = c_.out_channels;
    const auto filter = reinterpret_cast<float*>(a.workspace);
    const std::byte* image = a.inputs[0];
    const std::byte* out = a.inputs[1];
    if (pass_ == Pass::kForward) {
      transposeMatrix(device, a.in(1), filter, taps, outs);
      out = a.outputs[0];
    } else if (pass_ == Pass::kBackpropInput) {
      transposeMatrix(device, a.in(0), filter, taps, outs);
      image = a.outputs[0];
    }
    const Descriptor bound = plan_.bind(
        tensorIds(), {const_cast<std::byte*>(image), filter, const_cast<std::byte*>(out)},
        plan_workspace_);
    plan_.execute(device.libraries().dnn, bound);
    device.countLaunch();
    if (pass_ == Pass::kBackpropFilter) transposeMatrix(device, filter, a.out(0), outs, taps);
  }

  size_t workspaceBytes() const override { return floatBytes(c_.filterElements()); }
  const char* way() const override { return "cuDNN"; }

 private:
  // An empty sum is 0.
  void clear(Device& device, const Arguments& a) const {
    const int64_t elements = pass_ == Pass::kForward         ? c_.outElements()
                             : pass_ == Pass::kBackpropInput ? c_.imageElements()
                                                             : c_.filterElements();
    if (elements == 0) return;
    check(cudaMemsetAsync(a.outputs[0], 0, floatBytes(elements), device.stream()),
          "clearing a convolution");
  }

  // The fastest of the plans that keep what the precision promises.
  void choose(Device& device, const Descriptor& graph) {
    const Precision precision = precisionAsked();
    const Scratch image(device, floatBytes(c_.imageElements()));
    const Scratch filter(device, floatBytes(c_.filterElements()));
    const Scratch out(device, floatBytes(c_.outElements()));
    const std::vector<void*> tensors = {image.get(), filter.get(), out.get()};
    float best = std::numeric_limits<float>::infinity();
    size_t tried = 0;
    for (const Descriptor& config : engineConfigs(graph, {})) {
      if (tried == kCandidatesMax) break;
      if (!keepsPromise(config, precision)) continue;
      try {
        Plan plan(config, device.libraries().dnn);
        if (plan.workspaceBytes() > kPlanWorkspaceBytesMax) continue;
        const float taken = timeOf(device, plan, tensors);
        ++tried;
        if (taken >= best) continue;
        best = taken;
        plan_ = std::move(plan);
      } catch (const PluginError& error) {
        // An engine whose workspace doesn't fit is one that can't be had; a device that fails is not.
        if (error.code() == DTF_PLUGIN_UNAVAILABLE && cudaPeekAtLastError() != cudaSuccess) throw;
      }
    }
    if (!plan_)
      throw PluginError(DTF_PLUGIN_BAD_CONFIG,
                        "Node '" + name_ + "': cuDNN has no engine for this convolution in " +
                            (precision == Precision::kTf32 ? "TF32." : "float32.") +
                            " Place the node on a CPU, or set DTF_GPU_TF32=1.");
  }

  // Milliseconds of some runs.
  static float timeOf(Device& device, const Plan& plan, const std::vector<void*>& tensors) {
    const Scratch workspace(device, plan.workspaceBytes());
    const Descriptor bound = plan.bind(tensorIds(), tensors, workspace.get());
    const auto run = [&] { plan.execute(device.libraries().dnn, bound); };
    run();  // loads its code
    Stopwatch stopwatch(device.stream());
    return stopwatch.milliseconds([&] {
      for (int i = 0; i < kTimedRuns; ++i) run();
    });
  }

  static size_t floatBytes(int64_t elements) {
    return static_cast<size_t>(elements) * sizeof(float);
  }

  const Convolution c_;
  const Pass pass_;
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
