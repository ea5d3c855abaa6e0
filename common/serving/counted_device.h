#pragma once

// A device with bounded memory: counts all memory of programs compiled for it (tensors, workspaces,
// constants) from allocation to release.

#include <map>
#include <memory>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/runtime/device.h"
#include "common/runtime/stands_for.h"

namespace dtf::serving {

// Owns: shares of the budget for the allocated memory. Borrows: `device`.
// Threads: as the device; several threads may allocate and free memory.
// Blocks: as the device.
// Errors: kUnavailable if the budget has no room for an allocation; errors of the device.
class CountedDevice final : public runtime::Device, public runtime::StandsFor {
 public:
  CountedDevice(runtime::Device& device, std::shared_ptr<ByteBudget> budget);
  ~CountedDevice() override;

  runtime::DeviceType type() const override { return device_.type(); }
  std::string_view name() const override { return device_.name(); }
  bool usesHostMemory() const override { return device_.usesHostMemory(); }
  void copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) override {
    device_.copyToDevice(device_target, source, bytes);
  }
  void copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) override {
    device_.copyToHost(target, device_source, bytes);
  }
  void run(std::span<const runtime::Launch> launches) override { device_.run(launches); }
  std::unique_ptr<runtime::Program> prepare(std::span<const runtime::Launch> launches) override {
    return device_.prepare(launches);
  }
  void synchronise() override { device_.synchronise(); }
  runtime::Device& actual() override { return device_; }

 private:
  // Frees the memory before it returns the share.
  struct Block {
    ByteBudget::Share share;
    runtime::DeviceMemory memory;
  };

  std::byte* allocateBytes(size_t bytes) override;
  void freeBytes(std::byte* memory) noexcept override;

  runtime::Device& device_;
  const std::shared_ptr<ByteBudget> budget_;
  Mutex mutex_;
  std::map<std::byte*, Block> blocks_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::serving
