#pragma once

// A device plug-in (device_plugin.h) as a library that is loaded when a device of its kind is asked
// for. The programs are not linked with CUDA: they start on hosts without it, and what is missing
// is told in words where a GPU is asked for.

#include <memory>
#include <string>
#include <vector>

#include "common/runtime/device_plugin.h"
#include "common/runtime/kernel.h"

namespace dtf::runtime {

// Owns: nothing that ends: a loaded plug-in stays until the process ends, as its drivers' threads
// do.
// Threads: thread-safe, immutable.
class PluginLibrary {
 public:
  // Loads `path`. Blocks while the linker reads libraries (cuDNN's are some hundred MB).
  // Errors: kUnavailable naming the file and what the linker misses; kInternal for one of another
  // version or without the entry.
  explicit PluginLibrary(const std::string& path);

  const dtf_device_plugin& calls() const { return *calls_; }
  const std::string& path() const { return path_; }
  std::string backend() const { return calls_->backend; }

  // How many devices the host has; `why`, where it isn't null: of none, what is missing.
  int deviceCount(std::string* why = nullptr) const;

 private:
  std::string path_;
  const dtf_device_plugin* calls_ = nullptr;
};

// Where libdtf_gpu.so is looked for, in this order: $DTF_GPU_PLUGIN alone where it is set; `gpu/`
// of the build folder that the running program lies in; ../lib/dtf, ../lib64/dtf and
// ../lib/<architecture>/dtf (an installed one).
std::vector<std::string> gpuPluginPaths();

// The plug-in for GPUs, loaded by the first call. Thread-safe.
// Errors: kUnavailable when there is none, naming the places looked at; those of PluginLibrary.
std::shared_ptr<const PluginLibrary> gpuPlugin();

// Adds a kernel for each of the plug-in's ops that the table doesn't have for GPUs yet.
void registerPluginKernels(KernelTable& table, std::shared_ptr<const PluginLibrary> plugin);

// Throws what a plug-in's call said in `status`; nothing where it said DTF_PLUGIN_OK.
void throwIfFailed(const dtf_plugin_status& status);

}  // namespace dtf::runtime
