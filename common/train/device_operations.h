#pragma once

// Operations of a device that run one after the other on memory that stays where it is: what isn't
// in a step's graph.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"
#include "common/train/model_part.h"

namespace dtf::train {

// A tensor of an operation, and where the device has it.
struct DeviceTensor {
  graph::TensorSpec spec;
  std::byte* memory = nullptr;
};

// Owns: the kernels and their workspaces.
// Borrows: the device, and all memory of the tensors; both must outlive this.
// Threads: thread-compatible; a turn with the device is the caller's to take (runtime::DeviceLock).
// Blocks: prepare().
// Errors: those of the kernels and of the device.
class DeviceOperations {
 public:
  explicit DeviceOperations(const ComputeDevice& on) : on_(on) {}

  // Before prepare(). An output may be the memory of an input where the op says so.
  void add(std::string_view op, graph::Attributes attributes,
           const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs);
  // Once. Without operations run() does nothing.
  void prepare();
  bool empty() const { return steps_.empty(); }
  // May return before they are done.
  void run();

 private:
  struct Step {
    std::string name;
    std::unique_ptr<runtime::Kernel> kernel;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    runtime::DeviceMemory workspace;
  };

  const ComputeDevice on_;
  std::vector<Step> steps_;
  std::vector<runtime::Launch> launches_;
  std::unique_ptr<runtime::Program> program_;
};

}  // namespace dtf::train
