// The contract of a message stream on a kj pipe, as a simulation uses it.

#include <gmock/gmock.h>

#include "tests/unit/net/message_stream_fixture.h"

namespace dtf::net::testing {
namespace {

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

// Both ends are in one process, so that an early start gains nothing.
TEST(WrappedStream, AMessageThatIsBeingWrittenLeavesOnceItIsWhole) {
  Reactor reactor;
  auto pipe = kj::newTwoWayPipe();
  auto sender = wrapStream(kj::mv(pipe.ends[0]));
  auto receiver = wrapStream(kj::mv(pipe.ends[1]));
  std::vector<std::byte> memory(4096);
  capnp::MallocMessageBuilder message;
  message.initRoot<Echo::PushParams>().adoptData(message.getOrphanage().referenceExternalData(
      capnp::Data::Reader(reinterpret_cast<const kj::byte*>(memory.data()), memory.size())));
  const auto gate = std::make_shared<SendGate>(memory.data(), memory.size());
  ASSERT_TRUE(sender->sendsAsWritten());
  sender->sendAsWritten(memory.data(), gate);
  auto sent =
      sender->writeMessage(nullptr, message.getSegmentsForOutput()).eagerlyEvaluate(nullptr);
  auto read =
      receiver->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr).eagerlyEvaluate(nullptr);
  gate->open(4000);
  sender->sendMore();
  EXPECT_FALSE(read.poll(reactor.wait_scope));
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = patternAt(i);
  gate->open(4096);
  sender->sendMore();
  auto got = waitFor(reactor, kj::mv(read));
  const auto data = KJ_ASSERT_NONNULL(got).reader->getRoot<Echo::PushParams>().getData();
  EXPECT_EQ(checksum(data.begin(), data.size()), checksum(memory.data(), memory.size()));
  waitFor(reactor, kj::mv(sent));
  EXPECT_EQ(gate.use_count(), 1);
}

}  // namespace
}  // namespace dtf::net::testing
