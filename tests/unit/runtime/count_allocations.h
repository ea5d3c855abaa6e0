#pragma once

// Counts calls of malloc and its kin in this thread, whoever makes them: our code, the C++ library
// or oneDNN.

#include <cstddef>

namespace dtf::runtime::testing {

// Counts from its construction on. One at a time per thread.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
  // Both are always 0 under a sanitizer, which has its own malloc.
  int count() const;
  size_t largestBytes() const;
};

}  // namespace dtf::runtime::testing
