#include "common/ps/snapshot.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/base/shared_memory.h"

namespace dtf::ps {
namespace {

TEST(SnapshotPool, ArenasAreAlignedAndPadded) {
  SnapshotPool pool(3, 2);
  const std::shared_ptr<Snapshot> snapshot = pool.acquire(7);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(snapshot->data()) % 64, 0u);
  EXPECT_EQ(snapshot->elements(), 3u);
  EXPECT_EQ(snapshot->version(), 7u);
  EXPECT_EQ(snapshot->data()[3], 0.0f);
  EXPECT_EQ(snapshot->data()[4], 0.0f);
}

TEST(SnapshotPool, RecyclesAnArenaWhenItsLastReaderLetsGo) {
  SnapshotPool pool(16, 2);
  std::shared_ptr<const Snapshot> snapshot = pool.acquire(0);
  std::shared_ptr<const Snapshot> reader = snapshot;
  const float* arena = snapshot->data();
  snapshot = nullptr;
  EXPECT_NE(pool.acquire(1)->data(), arena);
  std::thread([&reader] { reader = nullptr; }).join();
  const std::shared_ptr<Snapshot> a = pool.acquire(2);
  const std::shared_ptr<Snapshot> b = pool.acquire(3);
  EXPECT_TRUE(a->data() == arena || b->data() == arena);
  EXPECT_EQ(pool.allocated(), 2u);
}

TEST(SnapshotPool, KeepsNoMoreUnusedArenasThanItsBound) {
  SnapshotPool pool(16, 3);
  std::vector<std::shared_ptr<Snapshot>> snapshots;
  for (int i = 0; i < 10; ++i) snapshots.push_back(pool.acquire(0));
  EXPECT_EQ(pool.allocated(), 10u);
  snapshots.clear();
  EXPECT_EQ(pool.allocated(), 3u);
}

TEST(SnapshotPool, SnapshotsMayOutliveTheirPool) {
  std::shared_ptr<Snapshot> snapshot;
  {
    SnapshotPool pool(16, 3);
    snapshot = pool.acquire(0);
  }
  snapshot->mutableData()[15] = 1;
  EXPECT_EQ(snapshot->data()[15], 1);
}

TEST(SnapshotPool, SharesTheArenasThatItMakesFromThenOn) {
  SnapshotPool pool(3, 2);
  std::shared_ptr<Snapshot> own = pool.acquire(0);
  { const std::shared_ptr<Snapshot> unused = pool.acquire(0); }
  EXPECT_EQ(own->sharedMemory(), nullptr);
  pool.share(0);
  EXPECT_EQ(pool.allocated(), 1u) << "what nobody used is given up";
  own = nullptr;
  EXPECT_EQ(pool.allocated(), 0u) << "and what is given back";
  uint64_t key = 0;
  {
    const std::shared_ptr<Snapshot> shared = pool.acquire(1);
    ASSERT_NE(shared->sharedMemory(), nullptr);
    EXPECT_EQ(shared->sharedMemory()->data(), reinterpret_cast<std::byte*>(shared->mutableData()));
    EXPECT_EQ(shared->data()[4], 0.0f) << "readable behind its elements";
    key = shared->sharedMemory()->key();
  }
  EXPECT_EQ(pool.acquire(2)->sharedMemory()->key(), key);
  pool.share(0);
  EXPECT_EQ(pool.acquire(2)->sharedMemory()->key(), key);
}

// Workers that compute each have another version; when they all ask again, their arenas are used
// again.
TEST(SnapshotPool, KeepsAnArenaForEachReader) {
  SnapshotPool pool(16, 2);
  pool.share(5);
  std::vector<std::shared_ptr<Snapshot>> read;
  for (int i = 0; i < 9; ++i) read.push_back(pool.acquire(0));
  read.clear();
  EXPECT_EQ(pool.allocated(), 7u);
}

TEST(SnapshotPool, GoesOnWithoutSharedMemoryWhereTheKernelRefusesIt) {
  SnapshotPool pool(16, 2);
  pool.share(0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::shared_ptr<Snapshot> own = pool.acquire(0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  own->mutableData()[15] = 1;
  EXPECT_EQ(own->sharedMemory(), nullptr);
  pool.share(0);
  EXPECT_EQ(pool.acquire(1)->sharedMemory(), nullptr) << "it isn't asked with each update";
}

TEST(SnapshotPool, DoesNotFillARetiredArenaAgain) {
  SnapshotPool pool(16, 2);
  pool.share(0);
  std::weak_ptr<const SharedMemory> memory;
  {
    const std::shared_ptr<const Snapshot> lent = pool.acquire(0);
    memory = lent->sharedMemory();
    lent->retire();
    EXPECT_EQ(pool.allocated(), 1u);
  }
  EXPECT_EQ(pool.allocated(), 0u);
  EXPECT_TRUE(memory.expired()) << "only whoever has it mapped keeps it";
}

TEST(SnapshotPool, WhatWasReceivedStaysWhereItIsWhileItsOwnerIsKept) {
  SnapshotPool pool(16, 3);
  const auto received = std::make_shared<Buffer>(17 * sizeof(float));
  received->as<float>()[15] = 5;
  const std::span<const float> values(received->as<float>(), 16);
  std::shared_ptr<const Snapshot> kept = pool.take(values, received, 7);
  EXPECT_EQ(kept->data(), values.data());
  EXPECT_EQ(kept->version(), 7u);
  EXPECT_EQ(pool.allocated(), 0u);
  EXPECT_EQ(received.use_count(), 2);
  std::thread([&kept] { kept = nullptr; }).join();
  EXPECT_EQ(received.use_count(), 1);
}

TEST(SnapshotPool, WhatCanNotStayIsCopied) {
  SnapshotPool pool(16, 3);
  const auto received = std::make_shared<Buffer>(17 * sizeof(float));
  received->as<float>()[16] = 5;
  const std::span<const float> askew(received->as<float>() + 1, 16);
  for (const auto& owner : {std::shared_ptr<const void>(received), std::shared_ptr<const void>()}) {
    const std::span<const float> values = owner ? askew : std::span(askew.data() - 1, 16);
    const std::shared_ptr<const Snapshot> copy = pool.take(values, owner, 7);
    EXPECT_NE(copy->data(), values.data());
    EXPECT_EQ(copy->data()[15], values[15]);
  }
  EXPECT_EQ(received.use_count(), 1);
}

TEST(SnapshotPool, ReadersMayReleaseOnOtherThreads) {
  SnapshotPool pool(64, 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool] {
      for (uint64_t i = 0; i < 500; ++i) pool.acquire(i)->mutableData()[0] = 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.allocated(), 3u);
}

}  // namespace
}  // namespace dtf::ps
