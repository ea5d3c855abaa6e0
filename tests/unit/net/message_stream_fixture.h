#pragma once

// AsioMessageStream below the RPC system: two ends of a Unix socket pair in one loop, plain and
// with TLS.

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/net/message_stream.h"
#include "tests/unit/net/key_fixture.h"
#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {

class MessageStreamTest : public ::testing::TestWithParam<Wire> {
 protected:
  ~MessageStreamTest() noexcept override {}  // gtest's may not throw, kj's may
  using Read = kj::Maybe<capnp::MessageReaderAndFds>;

  void useLimits(const Limits& limits) { makeStreams(limits); }
  void makeStreams(const Limits& limits) {
    auto sockets = pairOf(GetParam(), reactor_.ioc);
    sender_ = kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets.first), Limits{}, pool_);
    receiver_ =
        kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets.second), limits, pool_);
  }
  kj::Promise<Read> read() {
    return receiver_->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr);
  }
  kj::Promise<void> send(capnp::MessageBuilder& message) {
    return sender_->writeMessage(nullptr, message.getSegmentsForOutput());
  }
  static void fill(capnp::MessageBuilder& message, size_t bytes) {
    auto data = message.initRoot<Echo::PushParams>().initData(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<kj::byte>(patternAt(i));
  }
  // Like fill(), with the data by reference.
  static void refer(capnp::MessageBuilder& message, const std::byte* data, size_t bytes) {
    const capnp::Data::Reader reader(reinterpret_cast<const kj::byte*>(data), bytes);
    message.initRoot<Echo::PushParams>().adoptData(
        message.getOrphanage().referenceExternalData(reader));
  }
  static uint64_t checksumOf(capnp::MessageReader& message) {
    const auto data = message.getRoot<Echo::PushParams>().getData();
    return checksum(data.begin(), data.size());
  }
  static uint64_t patternSum(size_t bytes) {
    std::vector<std::byte> pattern(bytes);
    for (size_t i = 0; i < bytes; ++i) pattern[i] = patternAt(i);
    return checksum(pattern.data(), bytes);
  }
  kj::Own<capnp::MessageReader> next() {
    auto got = waitFor(reactor_, read());
    return kj::mv(KJ_ASSERT_NONNULL(got).reader);
  }

  Reactor reactor_;
  std::shared_ptr<BufferPool> pool_ = BufferPool::create();
  kj::Own<AsioMessageStream> sender_;
  kj::Own<AsioMessageStream> receiver_;
};

}  // namespace dtf::net::testing
