#pragma once

// Huge pages for large memory. A gigabyte has 262 144 pages of 4 KiB; each costs a fault, and an
// entry in the TLB.

#include <cstddef>

namespace dtf {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Returns the alignment for memory of that size: kHugePageBytes if it holds at least one huge page,
// else `least`.
constexpr size_t hugePageAlignment(size_t bytes, size_t least) {
  return bytes >= kHugePageBytes ? kHugePageBytes : least;
}

// Asks for huge pages; call it before the first write to the memory. A kernel without huge pages,
// or without free ones, ignores it.
void preferHugePages(void* memory, size_t bytes);

}  // namespace dtf
