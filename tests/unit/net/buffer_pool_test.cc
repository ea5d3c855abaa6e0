#include "common/net/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/support/sizes.h"

namespace dtf::net {
namespace {

TEST(BufferPool, ReusesABufferThatWasGivenBack) {
  const auto pool = BufferPool::create();
  const std::byte* first = pool->take(3 * kMiB).get();
  const auto second = pool->take(3 * kMiB - 5);
  EXPECT_EQ(second.get(), first);
  EXPECT_EQ(pool->freshCount(), 1u);
}

TEST(BufferPool, AlignsToPagesAndLargeOnesToHugePages) {
  const auto pool = BufferPool::create();
  const auto small = pool->take(300 << 10);
  const auto large = pool->take(5 * kMiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small.get()) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.get()) % (2 * kMiB), 0u);
  std::memset(small.get(), 1, 300 << 10);
  std::memset(large.get(), 1, 5 * kMiB);
}

TEST(BufferPool, RetainsNoMoreThanItsBound) {
  const auto pool = BufferPool::create(8 * kMiB);
  {
    const auto a = pool->take(4 * kMiB), b = pool->take(4 * kMiB), c = pool->take(4 * kMiB);
    EXPECT_EQ(pool->retainedBytes(), 0u);
  }
  EXPECT_EQ(pool->retainedBytes(), 8 * kMiB);
}

TEST(BufferPool, DoesNotSpendALargeBufferOnASmallRequest) {
  const auto pool = BufferPool::create();
  pool->take(64 * kMiB);
  const auto small = pool->take(4 * kMiB);
  EXPECT_EQ(pool->freshCount(), 2u);
  EXPECT_EQ(pool->retainedBytes(), 64 * kMiB);
}

TEST(BufferPool, BufferOutlivesThePoolsOwnerAndMayBeReleasedOnAnotherThread) {
  auto pool = BufferPool::create();
  auto buffer = pool->take(kMiB);
  pool.reset();
  std::thread([moved = std::move(buffer)]() mutable {
    std::memset(moved.get(), 7, kMiB);
    moved.reset();
  }).join();
}

TEST(BufferPool, BuffersInUseCountForABudget) {
  const auto budget = ByteBudget::create(3 * kMiB, "worker/1");
  const auto pool = BufferPool::create(kMiB, budget);
  auto first = pool->take(2 * kMiB);
  EXPECT_GE(budget->taken(), 2 * kMiB);
  auto second = pool->take(2 * kMiB);
  ASSERT_NE(second, nullptr) << "one may pass the bound";
  EXPECT_EQ(pool->take(300 << 10), nullptr);
  EXPECT_NE(pool->whyNull(300 << 10).find("worker/1 has no room for a message"), std::string::npos);
  const std::weak_ptr<std::byte> watched = first;
  first.reset();
  second.reset();
  EXPECT_EQ(budget->taken(), 0u) << "though somebody looks whether it is there";
  EXPECT_EQ(pool->retainedBytes(), 0u);
}

}  // namespace
}  // namespace dtf::net
