#include "common/runtime/cpu_device.h"

#include <cstdlib>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/huge_pages.h"
#include "common/base/trace.h"
#include "common/runtime/stop_scope.h"
#include "common/tensor/buffer.h"

namespace dtf::runtime {
CpuDevice::CpuDevice(int index) : name_("cpu:" + std::to_string(index)) {
  DTF_CHECK_MSG(index >= 0, name_);
}

std::byte* CpuDevice::allocateBytes(size_t bytes) {
  const size_t alignment = hugePageAlignment(bytes, kBufferAlignment);
  const size_t padded = (bytes + alignment) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, padded);
  if (memory == nullptr) {
    throw Error(ErrorCode::kUnavailable, "There are no " + std::to_string(padded) +
                                             " bytes of memory for a compiled step on " + name_ +
                                             "; make the batch or the model smaller.");
  }
  preferHugePages(memory, padded);
  std::memset(memory, 0, padded);
  return static_cast<std::byte*>(memory);
}

void CpuDevice::freeBytes(std::byte* memory) noexcept {
  std::free(memory);
}

void CpuDevice::copyToDevice(std::byte* device_target, const std::byte* source, size_t bytes) {
  DTF_CHECK(bytes == 0 || (device_target != nullptr && source != nullptr));
  if (bytes != 0) std::memcpy(device_target, source, bytes);
}

void CpuDevice::copyToHost(std::byte* target, const std::byte* device_source, size_t bytes) {
  DTF_CHECK(bytes == 0 || (target != nullptr && device_source != nullptr));
  if (bytes != 0) std::memcpy(target, device_source, bytes);
}

void CpuDevice::run(std::span<const Launch> launches) {
  if (trace::recordingOps()) return runTraced(launches);
  const std::atomic<bool>* const stop = StopScope::current();
  throwIfStopped(stop);
  for (const Launch& launch : launches) {
    if (stop != nullptr) throwIfStopped(stop);
    launch.kernel->run(launch.arguments);
  }
}

void CpuDevice::runTraced(std::span<const Launch> launches) {
  const std::atomic<bool>* const stop = StopScope::current();
  throwIfStopped(stop);
  for (const Launch& launch : launches) {
    throwIfStopped(stop);
    const TimePoint begin = trace::now();
    launch.kernel->run(launch.arguments);
    if (launch.name != nullptr) trace::addOp(*launch.name, begin, trace::now());
  }
}

}  // namespace dtf::runtime
