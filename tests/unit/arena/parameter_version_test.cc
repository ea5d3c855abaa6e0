#include "common/arena/parameter_version.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/base/shared_memory.h"

namespace dtf::arena {
namespace {

TEST(VersionPool, ArenasAreAlignedAndPadded) {
  VersionPool pool(3, 2);
  const std::shared_ptr<ParameterVersion> version = pool.acquire(7);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(version->data()) % 64, 0u);
  EXPECT_EQ(version->elements(), 3u);
  EXPECT_EQ(version->version(), 7u);
  EXPECT_EQ(version->data()[3], 0.0f);
  EXPECT_EQ(version->data()[4], 0.0f);
}

TEST(VersionPool, RecyclesAnArenaWhenItsLastReaderLetsGo) {
  VersionPool pool(16, 2);
  std::shared_ptr<const ParameterVersion> version = pool.acquire(0);
  std::shared_ptr<const ParameterVersion> reader = version;
  const float* arena = version->data();
  version = nullptr;
  EXPECT_NE(pool.acquire(1)->data(), arena);
  std::thread([&reader] { reader = nullptr; }).join();
  const std::shared_ptr<ParameterVersion> a = pool.acquire(2);
  const std::shared_ptr<ParameterVersion> b = pool.acquire(3);
  EXPECT_TRUE(a->data() == arena || b->data() == arena);
  EXPECT_EQ(pool.allocated(), 2u);
}

TEST(VersionPool, KeepsNoMoreUnusedArenasThanItsBound) {
  VersionPool pool(16, 3);
  std::vector<std::shared_ptr<ParameterVersion>> versions;
  for (int i = 0; i < 10; ++i) versions.push_back(pool.acquire(0));
  EXPECT_EQ(pool.allocated(), 10u);
  versions.clear();
  EXPECT_EQ(pool.allocated(), 3u);
}

TEST(VersionPool, VersionsMayOutliveTheirPool) {
  std::shared_ptr<ParameterVersion> version;
  {
    VersionPool pool(16, 3);
    version = pool.acquire(0);
  }
  version->mutableData()[15] = 1;
  EXPECT_EQ(version->data()[15], 1);
}

TEST(VersionPool, SharesTheArenasThatItMakesFromThenOn) {
  VersionPool pool(3, 2);
  std::shared_ptr<ParameterVersion> own = pool.acquire(0);
  { const std::shared_ptr<ParameterVersion> unused = pool.acquire(0); }
  EXPECT_EQ(own->sharedMemory(), nullptr);
  pool.share(0);
  EXPECT_EQ(pool.allocated(), 1u) << "what nobody used is given up";
  own = nullptr;
  EXPECT_EQ(pool.allocated(), 0u) << "and what is given back";
  uint64_t key = 0;
  {
    const std::shared_ptr<ParameterVersion> shared = pool.acquire(1);
    ASSERT_NE(shared->sharedMemory(), nullptr);
    EXPECT_EQ(shared->sharedMemory()->data(), reinterpret_cast<std::byte*>(shared->mutableData()));
    EXPECT_EQ(shared->data()[4], 0.0f) << "readable behind its elements";
    key = shared->sharedMemory()->key();
  }
  EXPECT_EQ(pool.acquire(2)->sharedMemory()->key(), key);
  pool.share(0);
  EXPECT_EQ(pool.acquire(2)->sharedMemory()->key(), key);
}

// Each of the computing workers reads another version. When all have pulled again, their arenas are
// reused.
TEST(VersionPool, KeepsAnArenaForEachReader) {
  VersionPool pool(16, 2);
  pool.share(5);
  std::vector<std::shared_ptr<ParameterVersion>> read;
  for (int i = 0; i < 9; ++i) read.push_back(pool.acquire(0));
  read.clear();
  EXPECT_EQ(pool.allocated(), 7u);
}

TEST(VersionPool, GoesOnWithoutSharedMemoryWhereTheKernelRefusesIt) {
  VersionPool pool(16, 2);
  pool.share(0);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::shared_ptr<ParameterVersion> own = pool.acquire(0);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  own->mutableData()[15] = 1;
  EXPECT_EQ(own->sharedMemory(), nullptr);
  pool.share(0);
  EXPECT_EQ(pool.acquire(1)->sharedMemory(), nullptr) << "it isn't asked with each update";
}

TEST(VersionPool, DoesNotFillARetiredArenaAgain) {
  VersionPool pool(16, 2);
  pool.share(0);
  std::weak_ptr<const SharedMemory> memory;
  {
    const std::shared_ptr<const ParameterVersion> lent = pool.acquire(0);
    memory = lent->sharedMemory();
    lent->retire();
    EXPECT_EQ(pool.allocated(), 1u);
  }
  EXPECT_EQ(pool.allocated(), 0u);
  EXPECT_TRUE(memory.expired()) << "only whoever has it mapped keeps it";
}

TEST(VersionPool, WhatWasReceivedStaysWhereItIsWhileItsOwnerIsKept) {
  VersionPool pool(16, 3);
  const auto received = std::make_shared<Buffer>(17 * sizeof(float));
  received->as<float>()[15] = 5;
  const std::span<const float> values(received->as<float>(), 16);
  std::shared_ptr<const ParameterVersion> kept = pool.take(values, received, 7);
  EXPECT_EQ(kept->data(), values.data());
  EXPECT_EQ(kept->version(), 7u);
  EXPECT_EQ(pool.allocated(), 0u);
  EXPECT_EQ(received.use_count(), 2);
  std::thread([&kept] { kept = nullptr; }).join();
  EXPECT_EQ(received.use_count(), 1);
}

TEST(VersionPool, WhatCanNotStayIsCopied) {
  VersionPool pool(16, 3);
  const auto received = std::make_shared<Buffer>(17 * sizeof(float));
  received->as<float>()[16] = 5;
  const std::span<const float> askew(received->as<float>() + 1, 16);
  for (const auto& owner : {std::shared_ptr<const void>(received), std::shared_ptr<const void>()}) {
    const std::span<const float> values = owner ? askew : std::span(askew.data() - 1, 16);
    const std::shared_ptr<const ParameterVersion> copy = pool.take(values, owner, 7);
    EXPECT_NE(copy->data(), values.data());
    EXPECT_EQ(copy->data()[15], values[15]);
  }
  EXPECT_EQ(received.use_count(), 1);
}

TEST(VersionPool, ReadersMayReleaseOnOtherThreads) {
  VersionPool pool(64, 3);
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
}  // namespace dtf::arena
