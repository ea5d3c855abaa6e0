#include "tests/unit/runtime/count_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>

#include "common/base/check.h"
#include "tests/support/sanitizer.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void note() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if defined(DTF_SANITIZER_MALLOC)
// From <sanitizer/allocator_interface.h>, which g++ 12 lacks.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*,
                                                                             size_t),
                                                         void (*free_hook)(const volatile void*));

namespace {

// A sanitizer's malloc can't be replaced, but has hooks.
[[maybe_unused]] const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { note(); }, [](const volatile void*) {});

}  // namespace
#else
// Definitions in the executable take precedence over glibc's, for shared libraries too; free()
// stays glibc's.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  note();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = aligned_alloc(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
}
#endif

namespace dtf::runtime::testing {

CountAllocations::CountAllocations() {
  allocations = 0;
  DTF_CHECK(!counting.exchange(true));
}
CountAllocations::~CountAllocations() {
  counting = false;
}
bool CountAllocations::countsAlignedAlloc() {
#if defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}
int CountAllocations::count() const {
  return allocations;
}

void awaitThreads(ComputePool& pool) {
  std::atomic<int> here{0};
  pool.run(pool.threads(), [&](int, int) {
    ++here;
    while (here < pool.threads()) std::this_thread::yield();
  });
}

}  // namespace dtf::runtime::testing
