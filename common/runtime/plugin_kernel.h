#pragma once

// A plug-in's kernel as a Kernel. Internal: plugin_device.cc and registerPluginKernels() use it.

#include <memory>

#include "common/runtime/kernel.h"
#include "common/runtime/plugin_library.h"

namespace dtf::runtime {

// Owns: the plug-in's kernel.
// Threads: thread-compatible. Blocks: only in prepare(), while the device chooses its way to
// compute.
// Errors: the constructor throws kBadConfig if the plug-in can't compute these types or shapes;
// prepare() as the device.
class PluginKernel final : public Kernel {
 public:
  PluginKernel(std::shared_ptr<const PluginLibrary> plugin, const Operation& operation);
  ~PluginKernel() override;

  // Never called: kernels of a plug-in run in programs, see PluginDevice.
  void run(const KernelArguments& arguments) override;
  size_t workspaceBytes() const override;
  void prepare(Device& device) override;
  std::string_view way() const override;
  bool canOverwrite(int output, int input) const override;

  dtf_plugin_kernel* handle() const { return kernel_; }

 private:
  const std::shared_ptr<const PluginLibrary> plugin_;
  dtf_plugin_kernel* kernel_ = nullptr;
};

}  // namespace dtf::runtime
