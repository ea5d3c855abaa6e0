#pragma once

// cuDNN's graph API: owned descriptors, a graph of one convolution, and the plan that runs it.
// Internal, see cuda_error.h. The legacy calls for convolutions are deprecated in cuDNN 9, and no
// distribution packages cudnn-frontend, NVIDIA's C++ header for this API.

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/cuda_error.h"

namespace dtf::gpu {

// Owns: one descriptor of the backend API, and those it refers to.
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

// Identifies a tensor in a graph, and binds its memory.
enum class TensorId : int64_t { kImage = 1, kFilter = 2, kOut = 3 };

// Returns the engine configurations that cuDNN offers for `graph`, best first: for this host's
// device, or for the device described by `properties` unless that is empty.
// Errors: kBadConfig if there are none.
std::vector<Descriptor> engineConfigs(const Descriptor& graph, const Descriptor& properties);

// A way to run a graph on a device.
// Owns: the plan. Threads: one at a time. Errors: PluginError.
class Plan {
 public:
  Plan() = default;
  // Makes the plan of `config`; compiles code if the engine needs it, for up to several seconds.
  Plan(const Descriptor& config, cudnnHandle_t handle);

  size_t workspaceBytes() const { return workspace_bytes_; }
  // Binds memory: `ids` and `pointers` are parallel.
  Descriptor bind(const std::vector<int64_t>& ids, const std::vector<void*>& pointers,
                  std::byte* workspace) const;
  // Queues it on the stream of `handle`.
  void execute(cudnnHandle_t handle, const Descriptor& bound) const;
  explicit operator bool() const { return static_cast<bool>(plan_); }

 private:
  Descriptor plan_;
  size_t workspace_bytes_ = 0;
};

}  // namespace dtf::gpu
