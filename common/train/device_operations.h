#pragma once

// Operations outside a step's graph, which a device runs one after the other on fixed memory.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"
#include "common/train/model_part.h"

namespace dtf::train {

// A tensor of an operation, with its memory on the device.
struct DeviceTensor {
  graph::TensorSpec spec;
  std::byte* memory = nullptr;
};

// Owns: the kernels and their workspaces.
// Borrows: the device, and all memory of the tensors; both must outlive this.
// Threads: thread-compatible; the caller holds the runtime::DeviceLock.
// Blocks: prepare().
// Errors: as the kernels and the device.
class DeviceOperations {
 public:
  explicit DeviceOperations(const ComputeDevice& on) : on_(on) {}

  // Adds an operation, before prepare(). An output may share the memory of an input if the op
  // allows it.
  void add(std::string_view op, graph::Attributes attributes,
           const std::vector<DeviceTensor>& inputs, const std::vector<DeviceTensor>& outputs);
  // Compiles the operations; call it once. Without operations run() does nothing.
  void prepare();
  bool empty() const { return steps_.empty(); }
  // May return before the device is done.
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
