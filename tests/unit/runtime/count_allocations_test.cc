// A counter that counts nothing would let every test that uses it pass.

#include "tests/unit/runtime/count_allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace dtf::runtime::testing {
namespace {

// Through a volatile address, so that no compiler leaves the pair out.
void (*volatile freeAll)(void*) = std::free;

TEST(CountAllocations, CountsMallocAndNew) {
  const CountAllocations allocations;
  freeAll(std::malloc(1));
  freeAll(std::calloc(1, 1));
  freeAll(std::realloc(nullptr, 1));
  ::operator delete(::operator new(1));
  ::operator delete(::operator new(64, std::align_val_t(64)), std::align_val_t(64));
  EXPECT_EQ(allocations.count(), 5);
}

TEST(CountAllocations, CountsAlignedAlloc) {
  const CountAllocations allocations;
  freeAll(std::aligned_alloc(64, 64));
  if (allocations.count() == 0 && !CountAllocations::countsAlignedAlloc()) {
    GTEST_SKIP() << "ThreadSanitizer doesn't tell of aligned_alloc()";
  }
  EXPECT_EQ(allocations.count(), 1);
}

TEST(CountAllocations, CountsAllThreadsAndOnlyItsTime) {
  void* const before = std::malloc(1);
  std::atomic<bool> started = false, counting = false, allocated = false;
  std::thread other([&] {
    started = true;
    started.notify_one();
    counting.wait(false);
    freeAll(std::malloc(1));
    allocated = true;
    allocated.notify_one();
  });
  started.wait(false);  // a sanitizer's allocations for a thread that starts don't count
  int count = -1;
  {
    const CountAllocations allocations;
    counting = true;
    counting.notify_one();
    allocated.wait(false);
    freeAll(before);
    count = allocations.count();
  }
  other.join();
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace dtf::runtime::testing
