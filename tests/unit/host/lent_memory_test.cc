#include "common/host/lent_memory.h"

#include <capnp/message.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "common/base/error.h"
#include "common/net/buffer_pool.h"
#include "common/net/connector.h"
#include "common/net/message_stream.h"
#include "common/wire/ps.capnp.h"
#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

constexpr uint64_t kLentElements = 16;

// The loop of the world, for a channel over which nothing moves: no descriptor becomes ready.
class UnwatchingLoop final : public net::Loop {
 public:
  explicit UnwatchingLoop(net::Loop& loop) : loop_(loop) {}
  const Clock& clock() const override { return loop_.clock(); }
  kj::Timer& timer() override { return loop_.timer(); }
  void post(std::function<void()> fn) override { loop_.post(std::move(fn)); }
  std::unique_ptr<net::DescriptorWatch> watch(int, std::function<void()>) override {
    return std::make_unique<net::DescriptorWatch>();
  }
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override {
    return loop_.connect(std::move(host), port, std::move(options), limits, std::move(pool));
  }

 private:
  net::Loop& loop_;
};

// The arenas that a session of the ps lends to a worker; the test stands in for the worker.
class LentMemoryTest : public ::testing::Test {
 protected:
  // Accepts the keys as in a shareMemory() call.
  void accept(std::vector<uint64_t> keys, uint64_t elements = kLentElements) {
    capnp::MallocMessageBuilder message;
    auto list = message.initRoot<schema::PsData::ShareMemoryParams>().initGradientKeys(
        static_cast<uint32_t>(keys.size()));
    for (uint32_t i = 0; i < keys.size(); ++i) list.set(i, keys[i]);
    lent_->accept(list.asReader(), elements);
  }
  void comeIn() {
    const net::MemoryDoor& door = lent_->openDoor();
    worker_.emplace(net::MemoryChannel::connect(door.address(), door.secret()));
  }
  void expectError(ErrorCode code, const char* text, const std::function<void()>& act) {
    try {
      act();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      EXPECT_THAT(error.message(), ::testing::HasSubstr(text));
    }
  }
  std::shared_ptr<const arena::ParameterVersion> snapshot(arena::VersionPool& pool, float value) {
    const std::shared_ptr<arena::ParameterVersion> made = pool.acquire(0);
    made->mutableData()[0] = value;
    return made;
  }

  PsWorld world_{1, 1};
  std::optional<LentMemory> lent_{std::in_place, world_.shard(), TaskId{JobKind::kWorker, 1}};
  std::optional<net::MemoryChannel> worker_;
  const SharedMemory gradient_{kLentElements * sizeof(float)};
};

TEST_F(LentMemoryTest, ReadsAGradientWhereTheWorkerWritesIt) {
  comeIn();
  worker_->give(gradient_);
  accept({gradient_.key()});
  const arena::Gradient gradient = lent_->gradient(gradient_.key(), kLentElements);
  reinterpret_cast<float*>(gradient_.data())[15] = 3;
  EXPECT_EQ(gradient.values.size(), kLentElements);
  EXPECT_EQ(gradient.values[15], 3);
  EXPECT_TRUE(gradient.is_lent);
  expectError(ErrorCode::kBadData, "which was not shared",
              [&] { lent_->gradient(1, kLentElements); });
  expectError(ErrorCode::kBadData, "which was not shared",
              [&] { lent_->gradient(gradient_.key(), kLentElements + 1); });
}

// A reader of the page trusts its size.
TEST_F(LentMemoryTest, APageOfAnotherSizeIsRefused) {
  constexpr size_t kPage = 4096;
  comeIn();
  accept({});
  const SharedMemory page(kPage), shorter(kPage - 1), longer(kPage + 1);
  worker_->give(page);
  EXPECT_EQ(lent_->page(page.key(), kPage)->bytes(), kPage);
  worker_->give(shorter);
  expectError(ErrorCode::kBadData, "has 4095 bytes, not 4096",
              [&] { lent_->page(shorter.key(), kPage); });
  worker_->give(longer);
  expectError(ErrorCode::kBadData, "the most is", [&] { lent_->page(longer.key(), kPage); });
  expectError(ErrorCode::kBadData, "named, but not shared", [&] { lent_->page(1, kPage); });
}

// The worker may have ended, but the memory that the shard still reads stays mapped.
TEST_F(LentMemoryTest, AGradientOutlivesTheSession) {
  auto written = std::make_unique<SharedMemory>(kLentElements * sizeof(float));
  comeIn();
  worker_->give(*written);
  accept({written->key()});
  const arena::Gradient gradient = lent_->gradient(written->key(), kLentElements);
  reinterpret_cast<float*>(written->data())[0] = 4;
  written.reset();
  lent_.reset();
  EXPECT_EQ(gradient.values[0], 4);
}

TEST_F(LentMemoryTest, WhoNeverCameOrGaveNothingIsRefused) {
  expectError(ErrorCode::kUnavailable, "has not connected", [&] { accept({}); });
  lent_->openDoor();
  expectError(ErrorCode::kUnavailable, "has not connected", [&] { accept({}); });
  comeIn();
  expectError(ErrorCode::kBadData, "named, but not shared", [&] { accept({gradient_.key()}); });
  comeIn();
  worker_->give(gradient_);
  expectError(ErrorCode::kBadData, "named, but not shared",
              [&] { accept({gradient_.key()}, kLentElements + 1); });
  comeIn();
  worker_->give(SharedMemory(1 << 20));
  expectError(ErrorCode::kBadData, "the most is", [&] { accept({1}); });
  comeIn();
  expectError(ErrorCode::kBadData, "3 gradient arenas", [&] { accept({1, 2, 3}); });
}

TEST_F(LentMemoryTest, GivesAnArenaOnceAndNamesItEachTime) {
  comeIn();
  accept({});
  arena::VersionPool pool(kLentElements, 2);
  pool.share(0);
  const auto parameters = snapshot(pool, 8);
  const uint64_t key = lent_->lend(parameters);
  EXPECT_NE(key, 0u);
  EXPECT_EQ(lent_->lend(parameters), key);
  const net::GivenMemory given = worker_->receive(1 << 20).value();
  EXPECT_EQ(given.key, key);
  EXPECT_EQ(reinterpret_cast<const float*>(given.memory->data())[0], 8);
  EXPECT_FALSE(worker_->receive(1 << 20).has_value());
}

TEST_F(LentMemoryTest, LendsNothingWithoutAChannelOrOfAnArenaOfItsOwn) {
  arena::VersionPool shared(kLentElements, 2), own(kLentElements, 2);
  shared.share(0);
  EXPECT_EQ(lent_->lend(snapshot(shared, 1)), 0u);
  comeIn();
  accept({});
  EXPECT_EQ(lent_->lend(snapshot(own, 1)), 0u) << "before the shard has made another";
  EXPECT_NE(lent_->lend(snapshot(shared, 1)), 0u);
}

// A worker may pull the same parameters repeatedly.
TEST_F(LentMemoryTest, KeepsWhatIsLentOnce) {
  comeIn();
  accept({});
  arena::VersionPool pool(kLentElements, 2);
  pool.share(0);
  const auto parameters = snapshot(pool, 1);
  const long before = parameters.use_count();
  for (int i = 0; i < 10; ++i) lent_->keepOnly(lent_->lend(parameters));
  EXPECT_EQ(parameters.use_count(), before + 1);
}

// An arena that a worker may be reading is not given to the next update.
TEST_F(LentMemoryTest, WhatIsLentStaysUntilTheWorkerSaysThatItIsNotInUse) {
  comeIn();
  accept({});
  arena::VersionPool pool(kLentElements, 4);
  pool.share(0);
  const uint64_t first = lent_->lend(snapshot(pool, 1));
  const uint64_t second = lent_->lend(snapshot(pool, 2));
  EXPECT_NE(first, second) << "the first is in use";
  lent_->keepOnly(second);
  EXPECT_EQ(lent_->lend(snapshot(pool, 3)), first) << "the only one that isn't";
  lent_->keepOnly(0);
  EXPECT_EQ(pool.allocated(), 2u);
}

// The worker may read it for any time: it may be frozen, or return on another connection.
TEST_F(LentMemoryTest, WhatIsLentWhenTheSessionEndsIsNeverWrittenAgain) {
  comeIn();
  accept({});
  arena::VersionPool pool(kLentElements, 4);
  pool.share(0);
  const uint64_t lent = lent_->lend(snapshot(pool, 1));
  const net::GivenMemory given = worker_->receive(1 << 20).value();
  lent_.reset();
  EXPECT_EQ(pool.allocated(), 0u);
  for (int i = 0; i < 4; ++i) EXPECT_NE(snapshot(pool, 9)->sharedMemory()->key(), lent);
  EXPECT_EQ(reinterpret_cast<const float*>(given.memory->data())[0], 1);
}

// The same parameters over a card's channel: a read that has begun may still be under way.
TEST_F(LentMemoryTest, ParametersThatACardMayReadAreNeverWrittenAgain) {
  ::setenv("UCX_TLS", "tcp", 1);
  std::shared_ptr<net::RemoteDomain> domain;
  try {
    domain = net::RemoteDomain::open();
  } catch (const Error& error) {
    GTEST_SKIP() << error.message();
  }
  UnwatchingLoop loop(world_.loop);
  lent_->openRemote(loop, domain, kLentElements);
  expectError(ErrorCode::kBadData, "worker/1 asks for a second channel of RDMA",
              [&] { lent_->openRemote(loop, domain, kLentElements); });
  arena::VersionPool pool(kLentElements, 4);
  pool.share(0);
  const uint64_t lent = lent_->lend(snapshot(pool, 1));
  EXPECT_NE(lent, 0u);
  lent_.reset();
  EXPECT_EQ(pool.allocated(), 0u);
  for (int i = 0; i < 4; ++i) EXPECT_NE(snapshot(pool, 9)->sharedMemory()->key(), lent);
}

TEST_F(LentMemoryTest, TellsOnceOfArenasThatAreNoMore) {
  comeIn();
  accept({});
  uint64_t key = 0;
  {
    arena::VersionPool pool(kLentElements, 2);
    pool.share(0);
    key = lent_->lend(snapshot(pool, 1));
    EXPECT_TRUE(lent_->takeGone().empty());
    lent_->keepOnly(0);
  }
  EXPECT_THAT(lent_->takeGone(), ::testing::ElementsAre(key));
  EXPECT_TRUE(lent_->takeGone().empty());
}

TEST_F(LentMemoryTest, AReplyThatAsksForACallNamesNoArenas) {
  comeIn();
  accept({});
  uint64_t gone = 0;
  {
    arena::VersionPool pool(kLentElements, 2);
    pool.share(0);
    gone = lent_->lend(snapshot(pool, 1));
    lent_->keepOnly(0);
  }
  arena::VersionPool own(kLentElements, 2), shared(kLentElements, 2);
  shared.share(0);
  wire::BoardReply reply;
  lent_->lend(snapshot(own, 1), reply);
  EXPECT_TRUE(reply.by_call);
  EXPECT_EQ(reply.gone[0], 0u) << "the worker would not read it";
  lent_->lend(snapshot(shared, 1), reply);
  EXPECT_FALSE(reply.by_call);
  EXPECT_NE(reply.key, 0u);
  EXPECT_EQ(reply.gone[0], gone);
}

// Its parameters travel from then on.
TEST_F(LentMemoryTest, AWorkerThatReceivesNothingIsGivenNoMore) {
  comeIn();
  accept({});
  worker_.reset();
  arena::VersionPool pool(kLentElements, 2);
  pool.share(0);
  EXPECT_EQ(lent_->lend(snapshot(pool, 1)), 0u);
  EXPECT_EQ(lent_->lend(snapshot(pool, 1)), 0u);
}

}  // namespace
}  // namespace dtf::host
