// Frames with bits flipped between the two halves of an AsioMessageStream, and frames of versions
// that send no checksums.

#include <capnp/serialize.h>
#include <gmock/gmock.h>

#include "common/net/frame_check.h"
#include "tests/unit/net/message_stream_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TurnedBits : public ::testing::Test {
 protected:
  ~TurnedBits() noexcept override {}  // gtest's may not throw, kj's may

  // Returns the bytes that are sent for messages of `data_bytes` bytes each.
  std::string framesOf(std::vector<size_t> data_bytes, bool checked = true) {
    auto sockets = connectedPair(reactor_.ioc);
    AsioMessageStream sender(reactor_.port, std::move(sockets.first), Limits{}, nullptr);
    if (!checked) sender.sendUnchecked();
    std::string frames;
    for (const size_t bytes : data_bytes) {
      capnp::MallocMessageBuilder message;
      auto data = message.initRoot<Echo::PushParams>().initData(bytes);
      for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<kj::byte>(patternAt(i));
      auto sent = sender.writeMessage(nullptr, message.getSegmentsForOutput());
      const size_t whole = frames.size() + capnp::computeSerializedSizeInWords(message) * 8;
      runUntil(reactor_, [&] {
        char some[65536];
        ssize_t got;
        while ((got = ::recv(sockets.second.native_handle(), some, sizeof some, MSG_DONTWAIT)) > 0)
          frames.append(some, static_cast<size_t>(got));
        return frames.size() >= whole && sender.queuedBytes() == 0;
      });
      waitFor(reactor_, kj::mv(sent));
    }
    return frames;
  }

  // Sends `frames` to a fresh stream, without an end. Expects `good` messages and then a damage
  // error.
  void expectDamage(const std::string& frames, int good, const std::string& what) {
    auto sockets = connectedPair(reactor_.ioc);
    AsioMessageStream receiver(reactor_.port, std::move(sockets.second), Limits{}, pool_);
    size_t sent = 0;
    const auto sendMore = [&] {
      const ssize_t put = ::send(sockets.first.native_handle(), frames.data() + sent,
                                 frames.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) sent += static_cast<size_t>(put);
    };
    int received = 0;
    kj::Maybe<kj::Exception> failure;
    auto reading = readAll(receiver, received).eagerlyEvaluate([&](kj::Exception&& e) {
      failure = kj::mv(e);
    });
    const auto deadline = reactor_.timer.now() + kPatience;
    while (failure == nullptr && reactor_.timer.now() < deadline) {
      sendMore();
      reactor_.ioc.poll();
      reactor_.wait_scope.poll();
    }
    ASSERT_TRUE(failure != nullptr) << what << ": it waits in vain";
    EXPECT_EQ(received, good) << what;
    EXPECT_THAT(receiver.damage(), HasSubstr("damaged on the way")) << what;
    EXPECT_THAT(receiver.violation(), IsEmpty()) << what;
    KJ_IF_MAYBE (exception, failure) {
      EXPECT_EQ(exception->getType(), kj::Exception::Type::DISCONNECTED) << what;
    }
  }

  static kj::Promise<void> readAll(AsioMessageStream& stream, int& received) {
    return stream.tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr)
        .then([&stream, &received](auto&& message) {
          KJ_REQUIRE(message != nullptr, "the end");
          ++received;
          return readAll(stream, received);
        });
  }

  static std::string turned(std::string bytes, size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    return bytes;
  }

  Reactor reactor_;
  std::shared_ptr<BufferPool> pool_ = BufferPool::create();
};

TEST_F(TurnedBits, EveryBitOfAFirstMessageIsFound) {
  const std::string frame = framesOf({40});
  for (size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    expectDamage(turned(frame, bit), 0, "bit " + std::to_string(bit));
    if (HasFatalFailure()) return;
  }
}

TEST_F(TurnedBits, EveryBitOfALaterMessageIsFound) {
  const std::string first = framesOf({40});
  const std::string frame = framesOf({600});
  for (size_t bit = 0; bit < 8 * frame.size(); bit += bit < 256 ? 1 : 5) {
    expectDamage(first + turned(frame, bit), 1, "bit " + std::to_string(bit));
    if (HasFatalFailure()) return;
  }
}

TEST_F(TurnedBits, EveryBitOfALargeHeaderAndBitsOfEveryPartOfTheBodyAreFound) {
  const std::string first = framesOf({40});
  const std::string frame = framesOf({400 << 10});
  ASSERT_GT(frame.size(), size_t{400} << 10);
  std::vector<size_t> bits;
  for (size_t bit = 0; bit < 8 * 64; ++bit) bits.push_back(bit);
  for (size_t bit = 8 * 64; bit < 8 * frame.size(); bit += 29'989) bits.push_back(bit);
  for (size_t bit = 8 * (frame.size() - 16); bit < 8 * frame.size(); ++bit) bits.push_back(bit);
  for (const size_t bit : bits) {
    expectDamage(first + turned(frame, bit), 1, "bit " + std::to_string(bit));
    if (HasFatalFailure()) return;
  }
}

TEST_F(TurnedBits, APeerThatSendsChecksumsSendsThemAlways) {
  const std::string checked = framesOf({40}), unchecked = framesOf({40}, false);
  expectDamage(checked + unchecked, 1, "without after with");
  expectDamage(unchecked + checked, 1, "with after without");
}

// Versions without checksums read frames so.
TEST_F(TurnedBits, CapnProtosOwnReaderTakesACheckedFrame) {
  for (const size_t bytes : {size_t{40}, size_t{600}, size_t{400} << 10}) {
    const std::string frame = framesOf({bytes});
    ASSERT_EQ(frame.size() % 8, 0u);
    auto words = kj::heapArray<capnp::word>(frame.size() / 8);
    std::memcpy(words.begin(), frame.data(), frame.size());
    capnp::FlatArrayMessageReader reader(words);
    const auto data = reader.getRoot<Echo::PushParams>().getData();
    ASSERT_EQ(data.size(), bytes);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], static_cast<kj::byte>(patternAt(i))) << i;
    EXPECT_EQ(reader.getEnd(), words.end()) << "nothing is left behind it";
  }
}

TEST_F(TurnedBits, APeerWithoutChecksumsIsRead) {
  auto sockets = connectedPair(reactor_.ioc);
  AsioMessageStream sender(reactor_.port, std::move(sockets.first), Limits{}, pool_);
  AsioMessageStream receiver(reactor_.port, std::move(sockets.second), Limits{}, pool_);
  sender.sendUnchecked();
  for (const size_t bytes : {size_t{40}, size_t{600}, size_t{400} << 10}) {
    capnp::MallocMessageBuilder message;
    message.initRoot<Echo::PushParams>().initData(bytes);
    const uint64_t before = sender.traffic().sent;
    auto sent = sender.writeMessage(nullptr, message.getSegmentsForOutput());
    auto read =
        waitFor(reactor_, receiver.tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr));
    waitFor(reactor_, kj::mv(sent));
    EXPECT_EQ(KJ_ASSERT_NONNULL(read).reader->getRoot<Echo::PushParams>().getData().size(), bytes);
    EXPECT_EQ(sender.traffic().sent - before, capnp::computeSerializedSizeInWords(message) * 8)
        << "as it is";
  }
}

// The frame is as long as one without checksums: TLS has its own.
TEST(TlsFrames, HaveNoChecksums) {
  Reactor reactor;
  for (const Wire wire : {Wire::kPlain, Wire::kTls}) {
    auto sockets = pairOf(wire, reactor.ioc);
    AsioMessageStream sender(reactor.port, std::move(sockets.first), Limits{}, nullptr);
    AsioMessageStream receiver(reactor.port, std::move(sockets.second), Limits{}, nullptr);
    capnp::MallocMessageBuilder message;
    message.initRoot<Echo::PushParams>().initData(600);
    waitFor(reactor, sender.writeMessage(nullptr, message.getSegmentsForOutput()));
    waitFor(reactor,
            receiver.tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr).ignoreResult());
    const size_t unchecked = capnp::computeSerializedSizeInWords(message) * 8;
    EXPECT_EQ(sender.traffic().sent, unchecked + (wire == Wire::kTls ? 0 : 8 + kChecksumBytes));
  }
}

}  // namespace
}  // namespace dtf::net::testing
