#pragma once

// A device whose memory is bounded: all that programs compiled for it take, their tensors,
// workspaces and constants, is counted where it is allocated, and for as long as it is.

#include <map>
#include <memory>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/runtime/device.h"
#include "common/runtime/stands_for.h"

namespace dtf::daemons {

// Owns: the shares of what is allocated. Borrows: `device`.
// Threads: as the device; memory may be taken and freed by several threads.
// Blocks: as the device.
// Errors: kUnavailable when the budget has no room for what is allocated; those of the device.
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
  // What is freed before it is given back.
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

}  // namespace dtf::daemons
