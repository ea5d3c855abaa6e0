#pragma once

// A device plug-in (device_plugin.h), loaded as a library when one of its devices is requested. The
// programs are not linked with CUDA: they start on hosts without it, and report the missing library
// when a GPU is requested.

#include <memory>
#include <string>
#include <vector>

#include "common/runtime/device_plugin.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// Owns: nothing that ends. A loaded plug-in stays until the process ends, as its drivers' threads
// do.
// Threads: thread-safe, immutable.
class PluginLibrary {
 public:
  // Loads `path`.
  // Blocks: while the linker reads libraries (cuDNN's have several hundred MB).
  // Errors: kUnavailable with the file and the linker's reason; kInternal for another version or
  // without the entry.
  explicit PluginLibrary(const std::string& path);

  const dtf_device_plugin& calls() const { return *calls_; }
  const std::string& path() const { return path_; }
  std::string backend() const { return calls_->backend; }

  // Returns the number of devices. If it is 0, `why`, unless null, receives the reason.
  int deviceCount(std::string* why = nullptr) const;

 private:
  std::string path_;
  const dtf_device_plugin* calls_ = nullptr;
};

// Returns the candidate paths of libdtf_gpu.so, in this order: $DTF_GPU_PLUGIN alone if set; `gpu/`
// of the build folder that contains the running program; ../lib/dtf, ../lib64/dtf and
// ../lib/<architecture>/dtf (installed).
std::vector<std::string> gpuPluginPaths();

// Returns the plug-in for GPUs, loaded by the first call. Thread-safe.
// Errors: kUnavailable with the searched paths if there is none; as PluginLibrary.
std::shared_ptr<const PluginLibrary> gpuPlugin();

// Adds a kernel for each of the plug-in's ops that the table doesn't have for GPUs yet.
void registerPluginKernels(KernelTable& table, std::shared_ptr<const PluginLibrary> plugin);

// Throws the error in `status`; does nothing for DTF_PLUGIN_OK.
void throwIfFailed(const dtf_plugin_status& status);

}  // namespace dtf::runtime
