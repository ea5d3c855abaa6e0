#include "tests/unit/runtime/count_allocations.h"

#include <cerrno>

namespace {

thread_local bool counting = false;
thread_local int allocations = 0;
thread_local size_t largest = 0;

[[maybe_unused]] void note(size_t bytes) {
  if (!counting) return;
  ++allocations;
  largest = bytes > largest ? bytes : largest;
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DTF_OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define DTF_OWN_MALLOC 0
#endif
#endif
#if !defined(DTF_OWN_MALLOC) && defined(__GLIBC__)
#define DTF_OWN_MALLOC 1
#endif

#if DTF_OWN_MALLOC
// Definitions in the executable take precedence over glibc's, for shared libraries too; free()
// stays glibc's.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(bytes);
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
  largest = 0;
  counting = true;
}
CountAllocations::~CountAllocations() {
  counting = false;
}
int CountAllocations::count() const {
  return allocations;
}
size_t CountAllocations::largestBytes() const {
  return largest;
}

}  // namespace dtf::runtime::testing
