// The sending half of an AsioMessageStream: the owners of the bytes that it sends, and its end.

#include <gmock/gmock.h>

#include "tests/unit/net/message_stream_fixture.h"

namespace dtf::net::testing {
namespace {

class FrameWriterTest : public MessageStreamTest {
 protected:
  ~FrameWriterTest() noexcept override {}  // gtest's may not throw, kj's may
};

TEST_P(FrameWriterTest, WhatWasQueuedStillArrivesWhenTheSenderIsDestroyed) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 100);
  waitFor(reactor_, send(message));
  sender_ = nullptr;
  EXPECT_EQ(checksumOf(*next()), patternSum(100));
}

TEST_P(FrameWriterTest, OwnerOfExternalBytesIsReleasedWhenTheyAreWritten) {
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

TEST_P(FrameWriterTest, OwnerOfUnwrittenBytesIsReleasedWithTheStream) {
  makeStreams({});
  auto bytes = makePattern(*pool_, 64);
  const std::weak_ptr<std::byte> alive = bytes;
  const std::byte* data = bytes.get();
  sender_->keepUntilWritten(data, std::move(bytes));
  EXPECT_FALSE(alive.expired());
  sender_ = nullptr;
  EXPECT_TRUE(alive.expired());
}

TEST_P(FrameWriterTest, ADroppedWriteOfALargeMessageEndsTheConnection) {
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

TEST_P(FrameWriterTest, AWriteToAPeerThatIsGoneFailsTheReadAsWell) {
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

INSTANTIATE_TEST_SUITE_P(Wires, FrameWriterTest, ::testing::Values(Wire::kPlain, Wire::kTls),
                         wireName);

}  // namespace
}  // namespace dtf::net::testing
