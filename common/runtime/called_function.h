#pragma once

// A function of the graph (graph/function.h), compiled so that a kernel can call it.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/graph/function.h"
#include "common/runtime/compiled_step.h"

namespace dtf::runtime {

// Owns: the function until prepare() has compiled it, then the compiled step.
// Borrows: the kernel table until prepare() has returned, then the device. Both outlive it.
// Threads: as CompiledStep. Blocks: in call().
class CalledFunction {
 public:
  // Errors: kBadConfig if the device lacks a kernel for one of its ops.
  CalledFunction(graph::FunctionRef function, DeviceType type, const KernelTable& kernels);

  // Returns the bytes of device memory that prepare() allocates, without constants.
  size_t bytes() const { return bytes_; }
  // Errors: as compile(); kBadConfig for a device that doesn't use the host's memory.
  void prepare(Device& device);

  // Binds a parameter until the next bind().
  void bind(size_t parameter, const std::byte* value);
  // All parameters must be bound.
  void call() { step_->run(); }
  // Valid until the next call. A result that is a parameter is the parameter's own memory.
  std::span<const std::byte> result(size_t index) const {
    return step_->fetchBytes(static_cast<int>(index));
  }

 private:
  graph::FunctionRef function_;  // null once it is compiled
  const KernelTable* kernels_;
  size_t bytes_ = 0;
  std::unique_ptr<CompiledStep> step_;
  std::vector<int> inputs_;  // of the step, by parameter
};

}  // namespace dtf::runtime
