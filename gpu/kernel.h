#pragma once

// One operation, prepared for its types and shapes; the product of the table of kernels.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/operation.h"

namespace dtf::gpu {

// A view; all memory is the device's.
struct Arguments {
  const std::byte* const* inputs = nullptr;
  std::byte* const* outputs = nullptr;
  std::byte* workspace = nullptr;

  template <class T = float>
  const T* in(size_t index) const {
    return reinterpret_cast<const T*>(inputs[index]);
  }
  template <class T = float>
  T* out(size_t index) const {
    return reinterpret_cast<T*>(outputs[index]);
  }
};

// Owns: plans of libraries. Threads: one at a time.
// Blocks: prepare(), while plans are chosen.
// Errors: PluginError; a factory throws kBadConfig for operations that it can't compute.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Called once, before the first launch.
  virtual void prepare(Device& device) { (void)device; }
  // Queues its work on the device's stream. Neither waits nor allocates: it may be captured.
  virtual void launch(Device& device, const Arguments& arguments) = 0;
  virtual size_t workspaceBytes() const { return 0; }
  virtual bool canOverwrite(int output, int input) const {
    (void)output, (void)input;
    return false;
  }
  virtual const char* way() const { return ""; }
};

using KernelFactory = std::unique_ptr<Kernel> (*)(const Operation& operation);
using KernelTable = std::map<std::string, KernelFactory, std::less<>>;

// Returns all kernels, made by the functions below on the first call. Thread-safe.
const KernelTable& kernelTable();

void addElementKernels(KernelTable& table);
void addTypedKernels(KernelTable& table);
void addActivationKernels(KernelTable& table);
void addRowKernels(KernelTable& table);
void addLabelKernels(KernelTable& table);
void addArrayKernels(KernelTable& table);
void addReductionKernels(KernelTable& table);
void addRandomKernels(KernelTable& table);
void addNormKernels(KernelTable& table);
void addBatchNormKernels(KernelTable& table);
void addFusedSoftmaxKernel(KernelTable& table);
void addPoolKernels(KernelTable& table);
void addGradientKernels(KernelTable& table);
void addUpdateKernels(KernelTable& table);
void addMatMulKernel(KernelTable& table);        // cuBLASLt
void addConvolutionKernels(KernelTable& table);  // cuDNN

}  // namespace dtf::gpu
