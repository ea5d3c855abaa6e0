#pragma once

// Counts calls of malloc and its kin in all threads of the process, from any code: ours, the C++
// library's or another's. Works under a sanitizer too, through its allocator's hooks.

#include "common/runtime/compute_pool.h"

namespace dtf::runtime::testing {

// Counts from its construction on. At most one at a time.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
  int count() const;
  static bool countsAlignedAlloc();  // false under ThreadSanitizer, which has no hook for it
};

// Returns when all threads of `pool` have run: a thread's start allocates memory that no step does.
void awaitThreads(ComputePool& pool);

}  // namespace dtf::runtime::testing
