#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"

namespace dtf::net {

// Tracks the progress of writing a memory that is sent at the same time: a stream sends only the
// written part.
// Borrows: the memory.
// Threads: open() by the writing thread; the rest by any.
class SendGate {
 public:
  SendGate(const void* begin, uint64_t bytes)
      : begin_(static_cast<const std::byte*>(begin)), bytes_(bytes) {}

  // Declares the first `bytes` of the memory final. `bytes` never decreases.
  void open(uint64_t bytes) {
    DTF_CHECK(bytes <= bytes_ && bytes >= opened_.load(std::memory_order_relaxed));
    opened_.store(bytes, std::memory_order_release);
  }
  bool isOpen() const { return opened_.load(std::memory_order_acquire) == bytes_; }

  // Returns how many of `bytes` bytes at `at`, a part of the memory, may be sent, from the first
  // on.
  uint64_t sendable(const void* at, uint64_t bytes) const {
    const auto skipped = static_cast<uint64_t>(static_cast<const std::byte*>(at) - begin_);
    DTF_CHECK(at >= begin_ && skipped + bytes <= bytes_);
    const uint64_t opened = opened_.load(std::memory_order_acquire);
    return opened <= skipped ? 0 : std::min(bytes, opened - skipped);
  }

 private:
  const std::byte* const begin_;
  const uint64_t bytes_;
  std::atomic<uint64_t> opened_{0};
};

}  // namespace dtf::net
