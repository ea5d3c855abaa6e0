#pragma once

// Counts calls of malloc and its kin in this thread, whoever makes them: our code, the C++ library
// or another. Under a sanitizer too, through the hooks of its allocator.

namespace dtf::runtime::testing {

// Counts from its construction on. One at a time per thread.
class CountAllocations {
 public:
  CountAllocations();
  ~CountAllocations();
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
  int count() const;
  static bool countsAlignedAlloc();  // not under ThreadSanitizer, which doesn't tell
};

}  // namespace dtf::runtime::testing
