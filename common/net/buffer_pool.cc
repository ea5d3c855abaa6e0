#include "common/net/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/check.h"
#include "common/base/huge_pages.h"

namespace dtf::net {

namespace {

constexpr size_t kPageBytes = 4096;

size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Few distinct capacities, so that a buffer fits the next message of about the same size.
size_t capacityFor(size_t bytes) {
  constexpr size_t kSmallUnit = 256 << 10;
  return roundUp(std::max<size_t>(bytes, 1), bytes < kHugePageBytes ? kSmallUnit : kHugePageBytes);
}

std::byte* mapFresh(size_t capacity) {
  DTF_CHECK(capacity > 0 && capacity % kPageBytes == 0);
  const size_t alignment = hugePageAlignment(capacity, kPageBytes);
  const size_t mapped = capacity + alignment - kPageBytes;
  void* raw = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  const auto start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = roundUp(start, alignment);
  DTF_CHECK(aligned >= start && aligned + capacity <= start + mapped);
  if (aligned > start) ::munmap(raw, aligned - start);
  if (const size_t tail = start + mapped - (aligned + capacity))
    ::munmap(reinterpret_cast<void*>(aligned + capacity), tail);
  auto* data = reinterpret_cast<std::byte*>(aligned);
  preferHugePages(data, capacity);
  return data;
}

}  // namespace

std::shared_ptr<BufferPool> BufferPool::create(size_t retained_bytes_max,
                                               std::shared_ptr<ByteBudget> budget) {
  return std::shared_ptr<BufferPool>(new BufferPool(retained_bytes_max, std::move(budget)));
}

BufferPool::BufferPool(size_t retained_bytes_max, std::shared_ptr<ByteBudget> budget)
    : retained_bytes_max_(retained_bytes_max), budget_(std::move(budget)) {
  free_.reserve(kFreeMax);  // release() must not allocate
}

BufferPool::~BufferPool() {
  for (const Buffer& buffer : free_) ::munmap(buffer.data, buffer.capacity);
}

std::shared_ptr<std::byte> BufferPool::take(size_t bytes) {
  const size_t capacity = capacityFor(bytes);
  DTF_CHECK(capacity >= bytes);  // the size of a message can't wrap around
  ByteBudget::Share share;
  if (budget_ != nullptr) {
    auto taken = budget_->takeUnlessPassed(capacity);
    if (!taken) return nullptr;
    share = *std::move(taken);
  }
  const Buffer buffer = acquire(capacity);
  DTF_CHECK(buffer.capacity >= capacity);
  // A weak_ptr elsewhere may keep this function alive, so the function itself gives back the share.
  return std::shared_ptr<std::byte>(buffer.data, [pool = shared_from_this(), buffer,
                                                  share = std::move(share)](std::byte*) mutable {
    pool->release(buffer);
    share = {};
  });
}

std::string BufferPool::whyNull(size_t bytes) const {
  DTF_CHECK(budget_ != nullptr);
  return budget_->refusal(bytes, "a message");
}

BufferPool::Buffer BufferPool::acquire(size_t capacity) {
  {
    MutexLock lock(mu_);
    // Takes the smallest that fits, unless it is much too large.
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->capacity < capacity || it->capacity > capacity + capacity / 2) continue;
      if (best == free_.end() || it->capacity < best->capacity) best = it;
    }
    if (best != free_.end()) {
      const Buffer buffer = *best;
      *best = free_.back();
      free_.pop_back();
      DTF_CHECK(retained_bytes_ >= buffer.capacity);
      retained_bytes_ -= buffer.capacity;
      return buffer;
    }
    ++fresh_count_;
  }
  return Buffer{mapFresh(capacity), capacity};
}

void BufferPool::release(Buffer buffer) noexcept {
  DTF_CHECK(buffer.data != nullptr && buffer.capacity > 0);
  {
    MutexLock lock(mu_);
    if (retained_bytes_ + buffer.capacity <= retained_bytes_max_ && free_.size() < kFreeMax) {
      free_.push_back(buffer);
      retained_bytes_ += buffer.capacity;
      return;
    }
  }
  ::munmap(buffer.data, buffer.capacity);
}

uint64_t BufferPool::freshCount() const {
  MutexLock lock(mu_);
  return fresh_count_;
}

size_t BufferPool::retainedBytes() const {
  MutexLock lock(mu_);
  return retained_bytes_;
}

}  // namespace dtf::net
