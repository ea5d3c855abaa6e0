#include "common/base/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

#include "common/base/check.h"

namespace dtf {

void preferHugePages(void* memory, size_t bytes) {
  if (bytes < kHugePageBytes) return;
  DTF_CHECK(reinterpret_cast<uintptr_t>(memory) % kHugePageBytes == 0);
  ::madvise(memory, bytes, MADV_HUGEPAGE);
}

}  // namespace dtf
