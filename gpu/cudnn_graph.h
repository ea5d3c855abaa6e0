#pragma once

// cuDNN's graph API: descriptors that are owned, a graph of one convolution, and the plan that runs
// it. Internal, see cuda_error.h. The legacy calls for convolutions are deprecated in cuDNN 9, and
// cudnn-frontend, NVIDIA's C++ header for this API, is in no distribution.

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/cuda_error.h"

namespace dtf::gpu {

// Owns: one descriptor of the backend API, and those that it refers to.
// Threads: one at a time.  Errors: PluginError, kInternal.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const;
  explicit operator bool() const { return owned_ != nullptr; }

  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values);
  Descriptor& setInt(cudnnBackendAttributeName_t name, int64_t value);
  Descriptor& setInts(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values);
  Descriptor& setFloat(cudnnBackendAttributeName_t name, float value);
  Descriptor& setDescriptor(cudnnBackendAttributeName_t name, const Descriptor& value);
  Descriptor& finalise();

 private:
  std::shared_ptr<void> owned_;
  std::vector<Descriptor> refers_to_;
};

// Where a tensor's memory is bound; also its name in a graph.
enum class TensorId : int64_t { kImage = 1, kFilter = 2, kOut = 3 };

// The engine configurations that cuDNN offers for `graph`, best first: for this host's device, or
// for the one that `properties` describes where it isn't empty.
// Errors: kBadConfig where there is none.
std::vector<Descriptor> engineConfigs(const Descriptor& graph, const Descriptor& properties);

// A way to run a graph on a device.
// Owns: the plan. Threads: one at a time. Errors: PluginError.
class Plan {
 public:
  Plan() = default;
  // Of `config`; compiles code where the engine needs it: up to some seconds.
  Plan(const Descriptor& config, cudnnHandle_t handle);

  size_t workspaceBytes() const { return workspace_bytes_; }
  // Its tensors' memory: `ids` and `pointers` go together.
  Descriptor bind(const std::vector<int64_t>& ids, const std::vector<void*>& pointers,
                  std::byte* workspace) const;
  // Gives it to the stream of `handle`.
  void execute(cudnnHandle_t handle, const Descriptor& bound) const;
  explicit operator bool() const { return static_cast<bool>(plan_); }

 private:
  Descriptor plan_;
  size_t workspace_bytes_ = 0;
};

}  // namespace dtf::gpu
