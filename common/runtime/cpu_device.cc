#include "common/runtime/cpu_device.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "common/base/error.h"
#include "common/tensor/buffer.h"

namespace dtf::runtime {
namespace {

// oneDNN takes as many threads as OpenMP offers the calling thread. Looked up at run time, because
// only oneDNN links an OpenMP runtime, and not every build of it does: without one there is nothing
// to limit.
void limitLibraryThreads(int threads) {
  thread_local int limit = 0;
  if (limit == threads) return;
  using SetThreads = void (*)(int);
  static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(threads);
  limit = threads;
}

}  // namespace

CpuDevice::CpuDevice(CpuDeviceOptions options)
    : name_("cpu:" + std::to_string(options.index)), threads_(options.threads) {
  if (threads_ < 1) {
    throw Error(ErrorCode::kBadConfig, "The CPU device needs at least 1 thread, it was given " +
                                           std::to_string(threads_) + ".");
  }
  // Kernels are prepared in the constructing thread, for as many threads as will run them.
  limitLibraryThreads(threads_);
}

std::byte* CpuDevice::allocateBytes(size_t bytes) {
  const size_t padded = (bytes + kBufferAlignment) / kBufferAlignment * kBufferAlignment;
  void* const memory = std::aligned_alloc(kBufferAlignment, padded);
  if (memory == nullptr) {
    throw Error(ErrorCode::kUnavailable, "There are no " + std::to_string(padded) +
                                             " bytes of memory for a compiled step on " + name_ +
                                             "; make the batch or the model smaller.");
  }
  std::memset(memory, 0, padded);
  return static_cast<std::byte*>(memory);
}

void CpuDevice::freeBytes(std::byte* memory) noexcept {
  std::free(memory);
}

void CpuDevice::copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) {
  if (bytes != 0) std::memcpy(device_target, source, bytes);
}

void CpuDevice::copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) {
  if (bytes != 0) std::memcpy(target, device_source, bytes);
}

void CpuDevice::run(std::span<const Launch> launches) {
  limitLibraryThreads(threads_);
  for (const Launch& launch : launches) launch.kernel->run(launch.arguments);
}

}  // namespace dtf::runtime
