#pragma once

// The interface of a back end for compiled steps: memory, copies, and running a list of prepared
// kernels. The CPU implements it here (cpu_device.h), other devices in plug-ins.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// One kernel call of a step, with every pointer resolved. A view; see Device::run.
struct Launch {
  Kernel* kernel = nullptr;
  KernelArguments arguments;
  const std::string* name = nullptr;  // for timelines: "Conv2D conv1/Conv2D"; may be null
};

// Launches prepared for repeated runs, in the device's fastest way.
// Borrows: the device, the launches and their memory; all must outlive it. On a device that uses
// the host's memory the pointers may change between two runs; elsewhere they must not.
// Threads, blocks, errors: as Device::run.
class Program {
 public:
  virtual ~Program() = default;
  virtual void run() = 0;
  // Returns the device's computing time of the last run, after a wait for it; nullopt if not
  // reported.
  virtual std::optional<double> deviceSeconds() const { return std::nullopt; }
  // Runs once more and waits; returns the device's time for each launch, empty if not reported.
  virtual std::vector<double> profile() { return {}; }
};

class Device;

struct DeviceFree {
  Device* device = nullptr;
  void operator()(std::byte* memory) const;
};
// Owns memory of a device; must not outlive the device.
using DeviceMemory = std::unique_ptr<std::byte[], DeviceFree>;

// Owns: the resources of the back end (streams, library handles).
// Threads: thread-compatible; one thread at a time runs steps on it. Threads that share it take
// turns with a DeviceLock.
// Blocks: only synchronise(), awaitHost() and copies to the host wait for the device.
// Errors: kUnavailable if the device runs out of memory or fails; kInternal if a kernel library
// rejects a call.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceType type() const = 0;
  virtual std::string_view name() const = 0;  // "cpu:0"

  // Whether kernels can access the host's memory. If not, a compiled step stages its bound tensors.
  virtual bool usesHostMemory() const = 0;

  // Allocates `bytes` zeroed bytes, aligned to 64 at least and padded to a multiple of 64. Never
  // nullptr.
  DeviceMemory allocate(size_t bytes) { return {allocateBytes(bytes), DeviceFree{this}}; }

  // Both are ordered after earlier launches and copies, and may return before the copy is done:
  // until synchronise() the source must not change, and the target of copyToHost isn't valid.
  virtual void copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) = 0;
  virtual void copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) = 0;

  // The same beside the launches, in the device's own order. A copy to the device is done before
  // later launches; no launch since the last synchronise() may use its target. A copy to the host
  // waits for earlier launches; no launch until synchronise() may write its source.
  virtual void copyToDeviceBeside(std::byte* device_target, const std::byte* source, size_t bytes) {
    copyToDevice(device_target, source, bytes);
  }
  virtual void copyToHostBeside(std::byte* target, const std::byte* device_source, size_t bytes) {
    copyToHost(target, device_source, bytes);
  }

  // Waits for the first `copies` calls of copyToHostBeside() since the last synchronise(), not
  // counting empty ones: their targets are valid.
  virtual void awaitHost(size_t copies) {
    (void)copies;
    synchronise();
  }

  // Copies from another device of the same plug-in, ordered like copyToDevice(). `peer` must be
  // idle, and `source` must not change until synchronise() of this device. Devices on the host's
  // memory don't support it.
  virtual void copyFromPeer(std::byte* target, Device& peer, const std::byte* source, size_t bytes);

  // Runs the launches in order, or as if in order; may return before they are done. Memory of a
  // launch must stay valid until synchronise(). Errors of kernels (bad labels) are thrown here or
  // by synchronise(); kUnavailable if a StopScope of the thread is stopped (stop_scope.h).
  virtual void run(std::span<const Launch> launches) = 0;

  // Prepares launches for many runs. Default: calls run() each time.
  virtual std::unique_ptr<Program> prepare(std::span<const Launch> launches);

  // Waits for all earlier operations.
  virtual void synchronise() = 0;

 private:
  friend struct DeviceFree;
  friend class DeviceLock;
  virtual std::byte* allocateBytes(size_t bytes) = 0;
  virtual void freeBytes(std::byte* memory) noexcept = 0;

  Mutex mutex_;
};

// A turn on a device with its own memory; other threads wait. On the device, operations of one
// turn precede the next turn's. They need not be complete by then; any later synchronise()
// completes them. compile() and CompiledStep take a turn for each call. A device on the host's
// memory belongs to one thread and takes no turns: its kernels may compile functions that they
// call.
class DeviceLock {
 public:
  explicit DeviceLock(Device& device) DTF_TSA(no_thread_safety_analysis)
      : mutex_(device.usesHostMemory() ? nullptr : &device.mutex_) {
    if (mutex_ != nullptr) mutex_->lock();
  }
  ~DeviceLock() DTF_TSA(no_thread_safety_analysis) {
    if (mutex_ != nullptr) mutex_->unlock();
  }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  Mutex* const mutex_;
};

inline void DeviceFree::operator()(std::byte* memory) const {
  device->freeBytes(memory);
}

}  // namespace dtf::runtime
