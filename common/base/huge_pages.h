#pragma once

// Large memory in huge pages: a page of 4 KiB costs a fault and a place in the processor's table of
// addresses each, and a gigabyte has 262 144 of them.

#include <cstddef>

namespace dtf {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// What memory of that size is to be aligned to, so that huge pages fit: `least`, or kHugePageBytes
// for memory that has one at least.
constexpr size_t hugePageAlignment(size_t bytes, size_t least) {
  return bytes >= kHugePageBytes ? kHugePageBytes : least;
}

// Before anything is written to it. A wish: a kernel without huge pages, or without any left,
// ignores it.
void preferHugePages(void* memory, size_t bytes);

}  // namespace dtf
