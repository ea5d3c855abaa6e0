#pragma once

// Holds one input of a reader of files to the heap that SECURITY.md allows it: in proportion to its
// bytes. libFuzzer's -rss_limit_mb can't: AddressSanitizer's own memory is part of that, and its
// -malloc_limit_mb sees one allocation at a time.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/support/sanitizer.h"

#ifdef DTF_SANITIZER_MALLOC
#include <sanitizer/allocator_interface.h>
#endif

namespace dtf::fuzz {

// The heap a reader may hold for any file, and for each byte of it: deflate expands a byte to 1032.
inline constexpr int64_t kHeapBase = int64_t{128} << 20;
inline constexpr int64_t kHeapPerByte = 2048;

// Counts the allocations during its life; an input that needs more ends the process.
// Threads: one bound at a time; allocations of any thread count.
class HeapBound {
 public:
  explicit HeapBound(size_t input_bytes)
      : limit_(kHeapBase + kHeapPerByte * static_cast<int64_t>(input_bytes)) {
#ifdef DTF_SANITIZER_MALLOC
    static const bool installed = __sanitizer_install_malloc_and_free_hooks(&onMalloc, &onFree) > 0;
    if (!installed) std::abort();
#endif
    held() = 0;
    most() = 0;
  }
  ~HeapBound() {
    if (most() <= limit_) return;
    std::fprintf(stderr, "a file of %lld bytes took %lld bytes of heap, more than %lld\n",
                 static_cast<long long>((limit_ - kHeapBase) / kHeapPerByte),
                 static_cast<long long>(most()), static_cast<long long>(limit_));
    std::abort();
  }
  HeapBound(const HeapBound&) = delete;
  HeapBound& operator=(const HeapBound&) = delete;

  static int64_t mostHeld() {
    return most();
  }

 private:
  static std::atomic<int64_t>& held() {
    static std::atomic<int64_t> bytes{0};
    return bytes;
  }
  static std::atomic<int64_t>& most() {
    static std::atomic<int64_t> bytes{0};
    return bytes;
  }
#ifdef DTF_SANITIZER_MALLOC
  static void onMalloc(const volatile void*, size_t bytes) {
    const int64_t now = held() += static_cast<int64_t>(bytes);
    if (now > most()) most() = now;
  }
  static void onFree(const volatile void* memory) {
    held() -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
  }
#endif

  const int64_t limit_;
};

}  // namespace dtf::fuzz
