#include "common/ps/snapshot.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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
