#include "common/runtime/plugin_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/mutex.h"

namespace dtf::runtime {
namespace {

constexpr const char* kGpuPluginFile = "libdtf_gpu.so";

ErrorCode pluginErrorCode(int32_t code) {
  switch (code) {
    case DTF_PLUGIN_BAD_CONFIG:
      return ErrorCode::kBadConfig;
    case DTF_PLUGIN_BAD_DATA:
      return ErrorCode::kBadData;
    case DTF_PLUGIN_UNAVAILABLE:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

std::filesystem::path runningProgram() {
  std::error_code ignored;  // without it, only the environment variable is left
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

}  // namespace

void throwIfFailed(const dtf_plugin_status& status) {
  if (status.code != DTF_PLUGIN_OK) throw Error(pluginErrorCode(status.code), status.message);
}

PluginLibrary::PluginLibrary(const std::string& path) : path_(path) {
  // RTLD_LOCAL hides the symbols of its libraries. Never closed: drivers leave threads behind.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(
        ErrorCode::kUnavailable,
        "The device plug-in " + path + " can't be loaded: " + ::dlerror() +
            ". Install the library that it names, or say where it is with LD_LIBRARY_PATH.");
  }
  const auto entry =
      reinterpret_cast<dtf_device_plugin_entry>(::dlsym(library, DTF_DEVICE_PLUGIN_SYMBOL));
  if (entry == nullptr) {
    throw Error(ErrorCode::kInternal,
                path + " is no device plug-in of dtf: it lacks " + DTF_DEVICE_PLUGIN_SYMBOL + ".");
  }
  calls_ = entry();
  DTF_CHECK(calls_ != nullptr);
  if (calls_->version != DTF_DEVICE_PLUGIN_VERSION) {
    throw Error(ErrorCode::kInternal,
                "The device plug-in " + path + " has version " + std::to_string(calls_->version) +
                    " of the boundary, this program " + std::to_string(DTF_DEVICE_PLUGIN_VERSION) +
                    ": install both from one version of dtf.");
  }
}

int PluginLibrary::deviceCount(std::string* why) const {
  dtf_plugin_status status = {};
  const int32_t count = calls_->device_count(&status);
  if (why != nullptr) *why = status.message;
  return count < 0 ? 0 : count;
}

std::vector<std::string> gpuPluginPaths() {
  if (const char* const said = std::getenv("DTF_GPU_PLUGIN"); said != nullptr && *said != '\0')
    return {said};
  std::vector<std::string> paths;
  const std::filesystem::path program = runningProgram();
  std::filesystem::path folder = program.parent_path();
  constexpr int kParents = 4;  // build/daemons/workerd, build/tests/unit/runtime
  for (int i = 0; i < kParents && folder.has_relative_path(); ++i, folder = folder.parent_path())
    if (std::filesystem::exists(folder / "build.ninja"))
      paths.push_back(folder / "gpu" / kGpuPluginFile);
  if (!program.has_parent_path()) return paths;
  const std::filesystem::path prefix = program.parent_path().parent_path();
  for (const char* const lib : {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"})
    paths.push_back(prefix / lib / "dtf" / kGpuPluginFile);
  return paths;
}

std::shared_ptr<const PluginLibrary> gpuPlugin() {
  static Mutex mutex;
  static std::shared_ptr<const PluginLibrary> loaded;
  MutexLock lock(mutex);
  if (loaded != nullptr) return loaded;
  std::string looked;
  for (const std::string& path : gpuPluginPaths()) {
    if (std::filesystem::exists(path)) {
      loaded = std::make_shared<const PluginLibrary>(path);
      return loaded;
    }
    looked += (looked.empty() ? "" : ", ") + path;
  }
  throw Error(ErrorCode::kUnavailable,
              "There is no " + std::string(kGpuPluginFile) +
                  ", which computes on GPUs. Looked at " + looked +
                  ". Build it where CUDA's nvcc is (-Dcuda=enabled), or say where it is with " +
                  "DTF_GPU_PLUGIN=FILE.");
}

}  // namespace dtf::runtime
