// The receiving half of an AsioMessageStream: its memory and its limits.

#include <gmock/gmock.h>

#include "tests/unit/net/message_stream_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

class FrameReaderTest : public MessageStreamTest {
 protected:
  ~FrameReaderTest() noexcept override {}  // gtest's may not throw, kj's may
};

TEST_P(FrameReaderTest, PinnedBytesOutliveTheMessageAndStayPageAligned) {
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

TEST_P(FrameReaderTest, SmallMessagesCannotBePinned) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 1000);
  waitFor(reactor_, send(message));
  auto reader = next();
  EXPECT_EQ(receiver_->pin(reader->getRoot<Echo::PushParams>().getData().begin()), nullptr);
}

TEST_P(FrameReaderTest, ReceiveBuffersAreReused) {
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

TEST_P(FrameReaderTest, TightLimitsHoldUntilTheyAreRaised) {
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

// A shard of 125 GB is such a message: each chunk of 256 MiB is a segment.
TEST_P(FrameReaderTest, AMessageOfFiveHundredSegmentsIsReadWhole) {
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

// A list of Void may claim any number of elements in three words.
TEST_P(FrameReaderTest, AMessageIsNotReadForMoreThanItsBytesJustify) {
  makeStreams({});
  constexpr kj::uint kClaimed = 20'000'000;
  capnp::MallocMessageBuilder message;
  message.getRoot<capnp::AnyPointer>().initAs<capnp::List<capnp::Void>>(kClaimed);
  waitFor(reactor_, send(message));
  capnp::ReaderOptions options;
  options.traversalLimitInWords = uint64_t{1} << 40;  // as an RpcConnection sets it
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

TEST_P(FrameReaderTest, ALargeMessageIsReadSeveralTimesOver) {
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

TEST_P(FrameReaderTest, ALargeMessageIsTakenWithoutAPool) {
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

INSTANTIATE_TEST_SUITE_P(Wires, FrameReaderTest, ::testing::Values(Wire::kPlain, Wire::kTls),
                         wireName);

}  // namespace
}  // namespace dtf::net::testing
