#pragma once

// What a back end offers to a compiled step: memory, copies, and running a list of prepared
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
  const std::string* name = nullptr;  // for timelines: "Conv2D conv1/Conv2D"; null: it has none
};

// Launches that were prepared to run again and again, as a device does that best.
// Borrows: the device, the launches and what they point to; all must outlive it. Where the device
// uses the host's memory the pointers may change between two runs; elsewhere they must not.
// Threads, blocks, errors: as Device::run.
class Program {
 public:
  virtual ~Program() = default;
  virtual void run() = 0;
  // How long the device computed in the last run, once it has been waited for. None: the device
  // doesn't say.
  virtual std::optional<double> deviceSeconds() const { return std::nullopt; }
  // Runs once more and waits: how long the device took for each launch. Empty: it doesn't say.
  virtual std::vector<double> profile() { return {}; }
};

class Device;

struct DeviceFree {
  Device* device = nullptr;
  void operator()(std::byte* memory) const;
};
// Owns memory of a device, which it must not outlive.
using DeviceMemory = std::unique_ptr<std::byte[], DeviceFree>;

// Owns: whatever the back end needs (streams, library handles).
// Threads: thread-compatible; one thread at a time runs steps on it, those that share it by turns
// of a DeviceLock.
// Blocks: only synchronise(), awaitHost() and copies to the host wait for the device.
// Errors: kUnavailable when the device runs out of memory or fails; kInternal when a kernel library
// refuses a call.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceType type() const = 0;
  virtual std::string_view name() const = 0;  // "cpu:0"

  // Whether kernels can read and write memory of the host. If not, a compiled step stages what is
  // bound to it.
  virtual bool usesHostMemory() const = 0;

  // `bytes` zeroed bytes, aligned to 64 at least and padded to a multiple of 64. Never nullptr.
  DeviceMemory allocate(size_t bytes) { return {allocateBytes(bytes), DeviceFree{this}}; }

  // Both are ordered after the launches and copies before them, and may return before the copy is
  // done: until synchronise() the source must stay as it is, and the target of copyToHost isn't
  // valid.
  virtual void copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) = 0;
  virtual void copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) = 0;

  // As these, but beside the launches, in whatever order suits the device. To the device: before
  // the launches that come after it, and none since the last synchronise() uses the target. To the
  // host: after the launches that come before it, and none until synchronise() writes the source.
  virtual void copyToDeviceBeside(std::byte* device_target, const std::byte* source, size_t bytes) {
    copyToDevice(device_target, source, bytes);
  }
  virtual void copyToHostBeside(std::byte* target, const std::byte* device_source, size_t bytes) {
    copyToHost(target, device_source, bytes);
  }

  // Waits for the first `copies` of copyToHostBeside() since the last synchronise(), of more than
  // no bytes: their targets are valid.
  virtual void awaitHost(size_t copies) {
    (void)copies;
    synchronise();
  }

  // From another device of the same plug-in, ordered as copyToDevice(). `peer` must have been
  // waited for, and `source` stay until synchronise() of this one. Not of a device on the host's
  // memory.
  virtual void copyFromPeer(std::byte* target, Device& peer, const std::byte* source, size_t bytes);

  // Runs the launches in order, or as if in order; may return before they are done. Everything a
  // launch points to must stay until synchronise(). Errors of kernels (bad labels) come from here
  // or from synchronise(); kUnavailable where a StopScope of the thread says so (stop_scope.h).
  virtual void run(std::span<const Launch> launches) = 0;

  // The same launches to run many times. Here: run() each time.
  virtual std::unique_ptr<Program> prepare(std::span<const Launch> launches);

  // Waits until everything asked for has happened.
  virtual void synchronise() = 0;

 private:
  friend struct DeviceFree;
  friend class DeviceLock;
  virtual std::byte* allocateBytes(size_t bytes) = 0;
  virtual void freeBytes(std::byte* memory) noexcept = 0;

  Mutex mutex_;
};

// A turn with a device that has memory of its own: others wait. What is asked for in one turn
// comes, on the device, before what is asked for in the next; it need not be done by then, and any
// later synchronise() finishes it. compile() and CompiledStep take a turn for each call. A device
// on the host's memory is one thread's, whose kernels may compile functions that they call: no
// turns.
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
