#pragma once

// Counts calls of malloc and its kin in all threads of the process, whoever makes them: our code,
// the C++ library or another. Under a sanitizer too, through the hooks of its allocator.

#include "common/runtime/compute_pool.h"

namespace dtf::runtime::testing {

// Counts from its construction on. One at a time.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
  int count() const;
  static bool countsAlignedAlloc();  // not under ThreadSanitizer, which doesn't tell
};

// Returns when all threads of `pool` have run: what a thread allocates while it starts is no
// step's.
void awaitThreads(ComputePool& pool);

}  // namespace dtf::runtime::testing
