#include "common/runtime/plugin_device.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/runtime/plugin_kernel.h"
#include "common/runtime/stop_scope.h"

namespace dtf::runtime {
namespace {

// Owns: the plug-in's program. Borrows: the device and the kernels, which must outlive it.
class PluginProgram final : public Program {
 public:
  PluginProgram(const dtf_device_plugin& calls, dtf_plugin_program* program, size_t launches)
      : calls_(calls), program_(program), launches_(launches) {}
  ~PluginProgram() override { calls_.destroy_program(program_); }

  void run() override {
    throwIfStopped(StopScope::current());
    dtf_plugin_status status = {};
    calls_.run_program(program_, &status);
    throwIfFailed(status);
  }

  std::optional<double> deviceSeconds() const override {
    dtf_plugin_status status = {};
    const double seconds = calls_.program_seconds(program_, &status);
    throwIfFailed(status);
    return seconds;
  }

  std::vector<double> profile() override {
    std::vector<double> seconds(launches_);
    dtf_plugin_status status = {};
    calls_.profile_program(program_, seconds.data(), &status);
    throwIfFailed(status);
    return seconds;
  }

 private:
  const dtf_device_plugin& calls_;
  dtf_plugin_program* const program_;
  const size_t launches_;
};

dtf_plugin_launch toPlugin(const Launch& launch) {
  const auto* const kernel = dynamic_cast<const PluginKernel*>(launch.kernel);
  DTF_CHECK(kernel != nullptr);  // KernelTable makes only these for GPUs
  return {kernel->handle(), reinterpret_cast<const void* const*>(launch.arguments.inputs.data()),
          reinterpret_cast<void* const*>(launch.arguments.outputs.data()),
          launch.arguments.workspace};
}

// Returns a sentence with the reason; empty if the host has the device.
std::string missingOf(const PluginLibrary& plugin, int index) {
  std::string why;
  const int count = plugin.deviceCount(&why);
  if (index < count) return "";
  const std::string there_is =
      count == 0
          ? "this host has no GPU that can be used (" +
                (why.empty() ? "the driver lists none" : why) + ")"
          : "this host has gpu:0" + (count > 1 ? " to gpu:" + std::to_string(count - 1) : " alone");
  return "There is no device gpu:" + std::to_string(index) + ": " + there_is + "; looked with " +
         plugin.path() + ".";
}

}  // namespace

std::string missingDevice(const std::string& device) {
  constexpr std::string_view kGpu = "gpu:";
  if (!device.starts_with(kGpu)) return "";
  try {
    return missingOf(*gpuPlugin(), std::stoi(device.substr(kGpu.size())));
  } catch (const Error& error) {
    return error.message();
  }
}

PluginDevice::PluginDevice(std::shared_ptr<const PluginLibrary> plugin, int index)
    : plugin_(std::move(plugin)), name_("gpu:" + std::to_string(index)) {
  DTF_CHECK_MSG(index >= 0, name_);
  const std::string missing = missingOf(*plugin_, index);
  if (!missing.empty()) throw Error(ErrorCode::kUnavailable, missing);
  dtf_plugin_status status = {};
  device_ = plugin_->calls().open(index, &status);
  throwIfFailed(status);
  DTF_CHECK(device_ != nullptr);
}

PluginDevice::~PluginDevice() {
  plugin_->calls().close(device_);
}

std::byte* PluginDevice::allocateBytes(size_t bytes) {
  dtf_plugin_status status = {};
  void* const memory = plugin_->calls().allocate(device_, bytes, &status);
  throwIfFailed(status);
  DTF_CHECK(memory != nullptr);
  return static_cast<std::byte*>(memory);
}

void PluginDevice::freeBytes(std::byte* memory) noexcept {
  plugin_->calls().deallocate(device_, memory);
}

void PluginDevice::copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) {
  if (bytes == 0) return;
  dtf_plugin_status status = {};
  plugin_->calls().copy_to_device(device_, device_target, source, bytes, &status);
  throwIfFailed(status);
}

void PluginDevice::copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) {
  if (bytes == 0) return;
  dtf_plugin_status status = {};
  plugin_->calls().copy_to_host(device_, target, device_source, bytes, &status);
  throwIfFailed(status);
}

void PluginDevice::copyToDeviceBeside(std::byte* device_target, const std::byte* source,
                                      size_t bytes) {
  if (bytes == 0) return;
  dtf_plugin_status status = {};
  plugin_->calls().copy_to_device_beside(device_, device_target, source, bytes, &status);
  throwIfFailed(status);
}

void PluginDevice::copyToHostBeside(std::byte* target, const std::byte* device_source,
                                    size_t bytes) {
  if (bytes == 0) return;
  dtf_plugin_status status = {};
  plugin_->calls().copy_to_host_beside(device_, target, device_source, bytes, &status);
  throwIfFailed(status);
}

void PluginDevice::awaitHost(size_t copies) {
  dtf_plugin_status status = {};
  plugin_->calls().await_host(device_, copies, &status);
  throwIfFailed(status);
}

void PluginDevice::copyFromPeer(std::byte* target, Device& peer, const std::byte* source,
                                size_t bytes) {
  const auto* const other = dynamic_cast<const PluginDevice*>(&peer);
  DTF_CHECK(other != nullptr && other->plugin_ == plugin_);
  if (bytes == 0) return;
  dtf_plugin_status status = {};
  plugin_->calls().copy_from_peer(device_, target, other->device_, source, bytes, &status);
  throwIfFailed(status);
}

void PluginDevice::run(std::span<const Launch> launches) {
  prepare(launches)->run();
  synchronise();  // its program is destroyed now
}

std::unique_ptr<Program> PluginDevice::prepare(std::span<const Launch> launches) {
  std::vector<dtf_plugin_launch> as_plugin;
  as_plugin.reserve(launches.size());
  for (const Launch& launch : launches) as_plugin.push_back(toPlugin(launch));
  dtf_plugin_status status = {};
  dtf_plugin_program* const program =
      plugin_->calls().make_program(device_, as_plugin.data(), as_plugin.size(), &status);
  throwIfFailed(status);
  DTF_CHECK(program != nullptr);
  return std::make_unique<PluginProgram>(plugin_->calls(), program, launches.size());
}

void PluginDevice::synchronise() {
  dtf_plugin_status status = {};
  plugin_->calls().synchronise(device_, &status);
  throwIfFailed(status);
}

std::string PluginDevice::description() const {
  return plugin_->calls().describe(device_);
}

uint64_t PluginDevice::kernelsLaunched() const {
  return plugin_->calls().kernels_launched(device_);
}

}  // namespace dtf::runtime
