#pragma once

// Devices of this process for tests of the engine, with kernels that count, fail and wait.

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/engine/local_step.h"
#include "common/engine/registered_part.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/runtime/plugin_device.h"
#include "tests/gpu/plugin_under_test.h"

namespace dtf::engine::testing {

// A kernel that runs a test's function and copies its input.
class ActingKernel final : public runtime::Kernel {
 public:
  ActingKernel(std::function<void()> act, size_t bytes) : act_(std::move(act)), bytes_(bytes) {}
  void run(const runtime::KernelArguments& arguments) override {
    act_();
    std::memcpy(arguments.outputs[0], arguments.inputs[0], bytes_);
  }

 private:
  std::function<void()> act_;
  size_t bytes_;
};

// Owns: CPU devices and their kernels, which a test may replace. A GPU here is a device of the
// plug-in of tests/gpu, with memory of its own, which computes on the host; its kernels can't be
// replaced.
class Devices {
 public:
  explicit Devices(const std::vector<graph::DeviceName>& names) {
    runtime::registerCpuKernels(plain_);
    for (const std::string& op : plain_.ops(runtime::DeviceType::kCpu)) {
      kernels_.add(op, runtime::DeviceType::kCpu,
                   [this](const runtime::Operation& operation) { return make(operation); });
    }
    for (const graph::DeviceName& name : names) {
      if (name.type == "GPU") {
        const auto plugin = runtime::testing::hostPlugin();
        runtime::registerPluginKernels(kernels_, plugin);
        devices_.push_back(
            std::make_unique<runtime::PluginDevice>(plugin, static_cast<int>(*name.index)));
      } else {
        devices_.push_back(std::make_unique<runtime::CpuDevice>(static_cast<int>(devices_.size())));
      }
      all_.push_back({name, devices_.back().get(), &kernels_});
    }
  }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  const std::vector<SessionDevice>& all() const { return all_; }
  const runtime::KernelTable& kernels() const { return kernels_; }

  // Sets the function that a node calls before it copies its first input to its output. Applies to
  // programs that are compiled from now on.
  void act(const std::string& node, std::function<void()> what) { acts_[node] = std::move(what); }

 private:
  std::unique_ptr<runtime::Kernel> make(const runtime::Operation& operation) const {
    const auto act = acts_.find(operation.name);
    if (act == acts_.end()) return plain_.make(operation, runtime::DeviceType::kCpu);
    const graph::TensorSpec& spec = operation.output_specs[0];
    const auto elements = static_cast<size_t>(spec.shape.elements());
    return std::make_unique<ActingKernel>(act->second, elements * dtypeBytes(spec.dtype));
  }

  runtime::KernelTable plain_, kernels_;
  std::map<std::string, std::function<void()>> acts_;
  std::vector<std::unique_ptr<runtime::Device>> devices_;
  std::vector<SessionDevice> all_;
};

// Runs a step that is never aborted.
inline uint64_t runToEnd(StepId step, std::span<StepPart> parts, Rendezvous& rendezvous) {
  StepWatch watch;
  return runParts(step, parts, rendezvous, watch, kDurationMax);
}

inline std::vector<graph::DeviceName> cpusOfWorker0(uint32_t count) {
  std::vector<graph::DeviceName> names;
  for (uint32_t i = 0; i < count; ++i) {
    names.push_back(graph::fullDevice({JobKind::kWorker, 0}, "CPU", i));
  }
  return names;
}

}  // namespace dtf::engine::testing
