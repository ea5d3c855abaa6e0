#pragma once

// The host's CPU as a device: kernels run in the calling thread, one after the other. Kernels that
// were made with a pool of threads (processor.h) split their work among them.

#include <string>

#include "common/runtime/device.h"

namespace dtf::runtime {

// Threads: thread-compatible.
// Blocks: run() until all launches are done.
// Errors: kUnavailable without memory; errors of the kernels.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int index = 0);  // "cpu:<index>"

  DeviceType type() const override { return DeviceType::kCpu; }
  std::string_view name() const override { return name_; }
  bool usesHostMemory() const override { return true; }
  void copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) override;
  void copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) override;
  void run(std::span<const Launch> launches) override;
  void synchronise() override {}

 private:
  std::byte* allocateBytes(size_t bytes) override;
  void freeBytes(std::byte* memory) noexcept override;
  void runTraced(std::span<const Launch> launches);

  std::string name_;
};

}  // namespace dtf::runtime
