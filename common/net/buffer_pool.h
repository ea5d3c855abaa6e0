#pragma once

// Receive and send buffers for large messages. A fresh allocation costs more in page faults than
// the transfer of its bytes over loopback, so buffers stay mapped and faulted, and are reused.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"

namespace dtf::net {

// Owns: free buffers, up to `retained_bytes_max`; a returned buffer beyond that is unmapped.
// Buffers in use count for the budget, if there is one; otherwise the message limits of the
// connections bound them.
// Threads: thread-safe. A buffer may be released on any thread, even after the last other owner of
// the pool is gone.
// Blocks: only on the kernel's mmap.
// Errors: std::bad_alloc.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kRetainedBytesMax = size_t{1} << 30;

  static std::shared_ptr<BufferPool> create(size_t retained_bytes_max = kRetainedBytesMax,
                                            std::shared_ptr<ByteBudget> budget = nullptr);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns at least `bytes` bytes, page-aligned (2 MiB-aligned if that large), uninitialised. A
  // fresh buffer is mapped, but touched only as it is filled: a peer that merely announces a large
  // message costs address space, not memory.
  // Returns null if the budget's bound was passed; whyNull() explains it.
  std::shared_ptr<std::byte> take(size_t bytes);
  std::string whyNull(size_t bytes) const;

  uint64_t freshCount() const;   // buffers mapped so far; constant in steady state
  size_t retainedBytes() const;  // in free buffers

 private:
  struct Buffer {
    std::byte* data;
    size_t capacity;
  };
  static constexpr size_t kFreeMax = 1024;

  BufferPool(size_t retained_bytes_max, std::shared_ptr<ByteBudget> budget);
  Buffer acquire(size_t capacity) DTF_EXCLUDES(mu_);
  void release(Buffer buffer) noexcept DTF_EXCLUDES(mu_);

  const size_t retained_bytes_max_;
  const std::shared_ptr<ByteBudget> budget_;  // may be null
  mutable Mutex mu_;
  std::vector<Buffer> free_ DTF_GUARDED_BY(mu_);
  size_t retained_bytes_ DTF_GUARDED_BY(mu_) = 0;
  uint64_t fresh_count_ DTF_GUARDED_BY(mu_) = 0;
};

}  // namespace dtf::net
