#include "common/serving/counted_device.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::serving {

CountedDevice::CountedDevice(runtime::Device& device, std::shared_ptr<ByteBudget> budget)
    : device_(device), budget_(std::move(budget)) {
  DTF_CHECK(budget_ != nullptr);
}

CountedDevice::~CountedDevice() {
  MutexLock lock(mutex_);
  DTF_CHECK(blocks_.empty());  // memory may not outlive its device
}

std::byte* CountedDevice::allocateBytes(size_t bytes) {
  Block block{budget_->take(bytes, "the tensors and workspaces of a part"),
              device_.allocate(bytes)};
  std::byte* const memory = block.memory.get();
  MutexLock lock(mutex_);
  const bool is_new = blocks_.emplace(memory, std::move(block)).second;
  DTF_CHECK(is_new);
  return memory;
}

void CountedDevice::freeBytes(std::byte* memory) noexcept {
  Block block;  // destroyed after the lock is released
  MutexLock lock(mutex_);
  const auto known = blocks_.find(memory);
  DTF_CHECK(known != blocks_.end());
  block = std::move(known->second);
  blocks_.erase(known);
}

}  // namespace dtf::serving
