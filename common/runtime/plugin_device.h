#pragma once

// A device of a plug-in (device_plugin.h) as a Device, and its kernels as Kernels.

#include <memory>
#include <string>

#include "common/runtime/device.h"
#include "common/runtime/plugin_library.h"

namespace dtf::runtime {

// Owns: the opened device. Borrows: nothing; the library is shared.
// Threads, blocks, errors: as Device. A StopScope takes effect between two steps: a program on the
// device runs to its end.
class PluginDevice final : public Device {
 public:
  // Opens device `index` of the host, counted from 0: "gpu:0".
  // Errors: kUnavailable, with the number of devices, or the missing library or driver if there are
  // none.
  PluginDevice(std::shared_ptr<const PluginLibrary> plugin, int index);
  ~PluginDevice() override;

  DeviceType type() const override { return DeviceType::kGpu; }
  std::string_view name() const override { return name_; }
  bool usesHostMemory() const override { return false; }
  void copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) override;
  void copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) override;
  void copyToDeviceBeside(std::byte* device_target, const std::byte* source, size_t bytes) override;
  void copyToHostBeside(std::byte* target, const std::byte* device_source, size_t bytes) override;
  void copyFromPeer(std::byte* target, Device& peer, const std::byte* source,
                    size_t bytes) override;
  void awaitHost(size_t copies) override;
  void run(std::span<const Launch> launches) override;
  std::unique_ptr<Program> prepare(std::span<const Launch> launches) override;
  void synchronise() override;

  std::string description() const;  // "NVIDIA H200, 139.8 GiB, driver 13.0"
  uint64_t kernelsLaunched() const;
  dtf_plugin_device* handle() const { return device_; }

 private:
  std::byte* allocateBytes(size_t bytes) override;
  void freeBytes(std::byte* memory) noexcept override;

  const std::shared_ptr<const PluginLibrary> plugin_;
  const std::string name_;
  dtf_plugin_device* device_ = nullptr;
};

// Returns the reason, for people, why this host lacks `device`, such as "gpu:0"; empty if it has
// the device, and for CPUs. Loads the plug-in for a GPU. Call it before starting a process that
// needs the device.
std::string missingDevice(const std::string& device);

}  // namespace dtf::runtime
