#include "common/net/message_stream.h"

#include <gmock/gmock.h>

#include "tests/unit/net/message_stream_fixture.h"

// AsioMessageStream below the RPC system, plain and with TLS.

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

// Sizes around each boundary: copied or gathered, input buffer or own buffer, heap or pool.
TEST_P(MessageStreamTest, CarriesMessagesOfAllSizesInOrder) {
  makeStreams({});
  for (const size_t bytes : {0, 1, 8, 1000, 16 << 10, (16 << 10) + 1, 60 << 10, (64 << 10) - 32,
                             64 << 10, 200 << 10, 256 << 10, (256 << 10) + 7, 3 << 20}) {
    capnp::MallocMessageBuilder message;
    fill(message, bytes);
    auto sent = send(message).eagerlyEvaluate(nullptr);
    EXPECT_EQ(checksumOf(*next()), patternSum(bytes)) << bytes << " bytes";
    waitFor(reactor_, kj::mv(sent));
  }
}

TEST_P(MessageStreamTest, ManySmallMessagesTravelTogether) {
  makeStreams({});
  kj::Vector<kj::Own<capnp::MallocMessageBuilder>> kept;
  for (size_t i = 0; i < 5000; ++i) {
    kept.add(kj::heap<capnp::MallocMessageBuilder>());
    fill(*kept.back(), i % 50);
    waitFor(reactor_, send(*kept.back()));
    if (i % 500 != 499) continue;
    for (size_t k = i - 499; k <= i; ++k) ASSERT_EQ(checksumOf(*next()), patternSum(k % 50));
  }
}

TEST_P(MessageStreamTest, EndOfStreamIsSeenBetweenMessages) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 100);
  waitFor(reactor_, send(message));
  waitFor(reactor_, sender_->end());
  next();
  EXPECT_TRUE(waitFor(reactor_, read()) == nullptr);
}

TEST_P(MessageStreamTest, WhatWasQueuedStillArrivesWhenTheSenderIsDestroyed) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 100);
  waitFor(reactor_, send(message));
  sender_ = nullptr;
  EXPECT_EQ(checksumOf(*next()), patternSum(100));
}

TEST_P(MessageStreamTest, OwnerOfExternalBytesIsReleasedWhenTheyAreWritten) {
  makeStreams({});
  constexpr size_t kBytes = 8 << 20;
  auto bytes = makePattern(*pool_, kBytes);
  const std::weak_ptr<std::byte> alive = bytes;
  capnp::MallocMessageBuilder message;
  refer(message, bytes.get(), kBytes);
  const std::byte* data = bytes.get();
  sender_->keepUntilWritten(data, std::move(bytes));
  auto sent = send(message).eagerlyEvaluate(nullptr);
  EXPECT_FALSE(alive.expired());
  EXPECT_GT(sender_->queuedBytes(), 0u);
  EXPECT_EQ(checksumOf(*next()), patternSum(kBytes));
  waitFor(reactor_, kj::mv(sent));
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(sender_->queuedBytes(), 0u);
  EXPECT_EQ(sender_->keptCount(), 0u);
}

TEST_P(MessageStreamTest, OwnerOfUnwrittenBytesIsReleasedWithTheStream) {
  makeStreams({});
  auto bytes = makePattern(*pool_, 64);
  const std::weak_ptr<std::byte> alive = bytes;
  const std::byte* data = bytes.get();
  sender_->keepUntilWritten(data, std::move(bytes));
  EXPECT_FALSE(alive.expired());
  sender_ = nullptr;
  EXPECT_TRUE(alive.expired());
}

TEST_P(MessageStreamTest, PinnedBytesOutliveTheMessageAndStayPageAligned) {
  makeStreams({});
  constexpr size_t kBytes = 1 << 20;
  const auto bytes = makePattern(*pool_, kBytes);
  capnp::MallocMessageBuilder message;
  refer(message, bytes.get(), kBytes);
  auto sent = send(message).eagerlyEvaluate(nullptr);
  const kj::byte* data = nullptr;
  std::shared_ptr<const void> pinned;
  {
    auto reader = next();
    data = reader->getRoot<Echo::PushParams>().getData().begin();
    pinned = receiver_->pin(data);
    EXPECT_EQ(receiver_->pin(data + kBytes - 1), pinned);
    EXPECT_EQ(receiver_->pin(data + kBytes), nullptr);
  }
  ASSERT_NE(pinned, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
  waitFor(reactor_, kj::mv(sent));
  sender_ = nullptr;
  receiver_ = nullptr;
  EXPECT_EQ(checksum(data, kBytes), patternSum(kBytes));
}

TEST_P(MessageStreamTest, SmallMessagesCannotBePinned) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 1000);
  waitFor(reactor_, send(message));
  auto reader = next();
  EXPECT_EQ(receiver_->pin(reader->getRoot<Echo::PushParams>().getData().begin()), nullptr);
}

TEST_P(MessageStreamTest, ReceiveBuffersAreReused) {
  makeStreams({});
  const auto bytes = makePattern(*pool_, 4 << 20);
  for (int i = 0; i < 10; ++i) {
    capnp::MallocMessageBuilder message;
    refer(message, bytes.get(), 4 << 20);
    auto sent = send(message).eagerlyEvaluate(nullptr);
    next();
    waitFor(reactor_, kj::mv(sent));
  }
  EXPECT_EQ(pool_->freshCount(), 2u);  // the sender's and one receive buffer
}

TEST_P(MessageStreamTest, TightLimitsHoldUntilTheyAreRaised) {
  makeStreams(kLimitsBeforeHello);
  capnp::MallocMessageBuilder small, large;
  fill(small, 1000);
  fill(large, 100 << 10);
  waitFor(reactor_, send(small));
  next();
  receiver_->setLimits({});
  auto sent = send(large).eagerlyEvaluate(nullptr);
  next();
  receiver_->setLimits(kLimitsBeforeHello);
  auto refused = send(large).eagerlyEvaluate(nullptr);
  EXPECT_THAT(failureOf(reactor_, read()).getDescription().cStr(), HasSubstr("allowed are 65536"));
  EXPECT_THAT(failureOf(reactor_, read()).getDescription().cStr(), HasSubstr("allowed are 65536"));
}

// As a shard of 125 GB would be: a chunk of 256 MiB is a segment.
TEST_P(MessageStreamTest, AMessageOfFiveHundredSegmentsIsReadWhole) {
  makeStreams({.segments_max = 512});
  constexpr kj::uint kChunks = 500;
  constexpr size_t kBytes = 16 << 10;
  auto bytes = makePattern(*pool_, kBytes);
  capnp::MallocMessageBuilder message;
  auto list = message.getRoot<capnp::AnyPointer>().initAs<capnp::List<capnp::Data>>(kChunks);
  const auto sizeOf = [](kj::uint i) { return i % 2 == 0 ? kBytes : 8 * (i % 100 + 1); };
  for (kj::uint i = 0; i < kChunks; ++i) {
    const auto* data = reinterpret_cast<const kj::byte*>(bytes.get());
    list.adopt(i, message.getOrphanage().referenceExternalData({data, sizeOf(i)}));
  }
  ASSERT_GT(message.getSegmentsForOutput().size(), kChunks);
  auto sent = send(message).eagerlyEvaluate(nullptr);
  auto got = next();
  const auto received = got->getRoot<capnp::AnyPointer>().getAs<capnp::List<capnp::Data>>();
  ASSERT_EQ(received.size(), kChunks);
  for (kj::uint i = 0; i < kChunks; ++i) {
    ASSERT_EQ(received[i].size(), sizeOf(i));
    ASSERT_EQ(checksum(received[i].begin(), sizeOf(i)), patternSum(sizeOf(i))) << i;
  }
  waitFor(reactor_, kj::mv(sent));
}

// A list of nothing has as many elements as it claims to, in three words.
TEST_P(MessageStreamTest, AMessageIsNotReadForMoreThanItsBytesJustify) {
  makeStreams({});
  constexpr kj::uint kClaimed = 20'000'000;
  capnp::MallocMessageBuilder message;
  message.getRoot<capnp::AnyPointer>().initAs<capnp::List<capnp::Void>>(kClaimed);
  waitFor(reactor_, send(message));
  capnp::ReaderOptions options;
  options.traversalLimitInWords = uint64_t{1} << 40;  // as an RpcConnection asks for
  auto received = waitFor(reactor_, receiver_->tryReadMessage(nullptr, options, nullptr));
  KJ_IF_MAYBE (got, received) {
    const auto root = got->reader->getRoot<capnp::AnyPointer>();
    const auto exception = kj::runCatchingExceptions(
        [&] { EXPECT_EQ(root.getAs<capnp::List<Echo::PushParams>>().size(), 0u); });
    EXPECT_TRUE(exception != nullptr) << "as structs that take memory it is refused";
  } else {
    FAIL() << "no message";
  }
}

TEST_P(MessageStreamTest, ALargeMessageIsReadSeveralTimesOver) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 1 << 20);
  auto sent = send(message);
  auto received = waitFor(reactor_, read());
  waitFor(reactor_, kj::mv(sent));
  KJ_IF_MAYBE (got, received) {
    for (int i = 0; i < 7; ++i) EXPECT_EQ(checksumOf(*got->reader), patternSum(1 << 20));
  } else {
    FAIL() << "no message";
  }
}

TEST_P(MessageStreamTest, ALargeMessageIsTakenWithoutAPool) {
  auto sockets = connectedPair(reactor_.ioc);
  sender_ = kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets.first), Limits{}, pool_);
  receiver_ =
      kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets.second), Limits{}, nullptr);
  capnp::MallocMessageBuilder message;
  fill(message, 1 << 20);
  auto sent = send(message);
  auto received = waitFor(reactor_, read());
  waitFor(reactor_, kj::mv(sent));
  KJ_IF_MAYBE (got, received) {
    EXPECT_EQ(checksumOf(*got->reader), patternSum(1 << 20));
  } else {
    FAIL() << "no message";
  }
}

TEST_P(MessageStreamTest, ADroppedWriteOfALargeMessageEndsTheConnection) {
  makeStreams({});
  {
    auto bytes = makePattern(*pool_, 32 << 20);
    capnp::MallocMessageBuilder message;
    refer(message, bytes.get(), 32 << 20);
    auto dropped = send(message).eagerlyEvaluate(nullptr);
  }
  EXPECT_EQ(failureOf(reactor_, read()).getType(), kj::Exception::Type::DISCONNECTED);
  capnp::MallocMessageBuilder message;
  fill(message, 8);
  EXPECT_EQ(failureOf(reactor_, send(message)).getType(), kj::Exception::Type::DISCONNECTED);
}

TEST_P(MessageStreamTest, AWriteToAPeerThatIsGoneFailsTheReadAsWell) {
  makeStreams({});
  receiver_ = nullptr;
  capnp::MallocMessageBuilder message;
  fill(message, 1 << 20);
  EXPECT_EQ(failureOf(reactor_, send(message)).getType(), kj::Exception::Type::DISCONNECTED);
  auto after =
      sender_->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr).then([](Read&& read) {
        KJ_REQUIRE(read == nullptr);
      });
  waitFor(reactor_, kj::mv(after));
}

INSTANTIATE_TEST_SUITE_P(Wires, MessageStreamTest, ::testing::Values(Wire::kPlain, Wire::kTls),
                         wireName);

// The same duties on a kj pipe, as a simulation uses it.
TEST(WrappedStream, PinsAndReleasesOwners) {
  Reactor reactor;
  const auto pool = BufferPool::create();
  auto pipe = kj::newTwoWayPipe();
  auto sender = wrapStream(kj::mv(pipe.ends[0]));
  auto receiver = wrapStream(kj::mv(pipe.ends[1]));
  auto bytes = makePattern(*pool, 4096);
  const uint64_t expected = checksum(bytes.get(), 4096);
  const std::weak_ptr<std::byte> alive = bytes;
  capnp::MallocMessageBuilder message;
  message.initRoot<Echo::PushParams>().adoptData(message.getOrphanage().referenceExternalData(
      capnp::Data::Reader(reinterpret_cast<const kj::byte*>(bytes.get()), 4096)));
  const std::byte* start = bytes.get();
  sender->keepUntilWritten(start, std::move(bytes));
  auto sent =
      sender->writeMessage(nullptr, message.getSegmentsForOutput()).eagerlyEvaluate(nullptr);
  EXPECT_FALSE(alive.expired());
  EXPECT_GT(sender->queuedBytes(), 0u);
  std::shared_ptr<const void> pinned;
  const kj::byte* data = nullptr;
  {
    auto got = waitFor(reactor, receiver->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr));
    data = KJ_ASSERT_NONNULL(got).reader->getRoot<Echo::PushParams>().getData().begin();
    pinned = receiver->pin(data);
  }
  waitFor(reactor, kj::mv(sent));
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(sender->queuedBytes(), 0u);
  ASSERT_NE(pinned, nullptr);
  EXPECT_EQ(checksum(data, 4096), expected);
}

}  // namespace
}  // namespace dtf::net::testing
