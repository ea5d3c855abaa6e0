#include "common/net/two_party_network.h"

#include <algorithm>
#include <cstring>

#include "common/base/random.h"
#include "tests/unit/net/net_fixture.h"

// The connection as the RPC layer sees it, without the RPC layer.

namespace dtf::net::testing {
namespace {

using Side = TwoPartyNetwork::Side;
using VatId = TwoPartyNetwork::VatId;

kj::Own<TwoPartyNetwork::Link> connectTo(TwoPartyNetwork& network, Side side) {
  capnp::MallocMessageBuilder message;
  auto peer = message.initRoot<VatId>();
  peer.setSide(side);
  auto link = network.connect(peer);
  KJ_IF_MAYBE (found, link) return kj::mv(*found);
  return {};
}

// Sends a message of about `bytes`, all of them `mark`; `room`: the RPC layer's guess of its size,
// in words.
void send(TwoPartyNetwork::Link& link, char mark, size_t bytes, kj::uint room = 16) {
  auto message = link.newOutgoingMessage(room);
  auto text = message->getBody().initAs<capnp::Data>(static_cast<kj::uint>(bytes));
  std::fill(text.begin(), text.end(), static_cast<kj::byte>(mark));
  message->send();
}

// Returns the next message's mark and size; "end" if there is none.
std::string receive(Reactor& reactor, TwoPartyNetwork::Link& link) {
  auto received = waitFor(reactor, link.receiveIncomingMessage());
  KJ_IF_MAYBE (message, received) {
    const auto text = (*message)->getBody().getAs<capnp::Data>();
    if (text.size() == 0) return "empty";
    EXPECT_EQ(std::memcmp(text.begin(), text.begin() + 1, text.size() - 1), 0) << "mixed bytes";
    return std::string(1, static_cast<char>(text[0])) + std::to_string(text.size());
  }
  return "end";
}

struct TwoParty {
  TwoParty(Reactor& reactor, kj::Own<MessageStream> a, kj::Own<MessageStream> b,
           uint64_t queued_bytes_max = UINT64_MAX)
      : streams{kj::mv(a), kj::mv(b)},
        client(*streams[0], Side::CLIENT, {}),
        server(*streams[1], Side::SERVER, {}, queued_bytes_max),
        up(connectTo(client, Side::SERVER)),
        down(waitFor(reactor, server.accept())) {}
  kj::Own<MessageStream> streams[2];
  TwoPartyNetwork client;
  TwoPartyNetwork server;
  kj::Own<TwoPartyNetwork::Link> up;
  kj::Own<TwoPartyNetwork::Link> down;
};

// Both ends in one loop.
class TwoPartyTest : public ::testing::Test {
 protected:
  ~TwoPartyTest() noexcept override {}  // gtest's may not throw, kj's may

  std::unique_ptr<TwoParty> over(kj::Own<MessageStream> a, kj::Own<MessageStream> b,
                                 uint64_t queued_bytes_max = UINT64_MAX) {
    return std::make_unique<TwoParty>(reactor_, kj::mv(a), kj::mv(b), queued_bytes_max);
  }
  std::unique_ptr<TwoParty> overSockets(uint64_t queued_bytes_max = UINT64_MAX) {
    auto pair = connectedPair(reactor_.ioc);
    return over(kj::heap<AsioMessageStream>(reactor_.port, std::move(pair.first), Limits{}, pool_),
                kj::heap<AsioMessageStream>(reactor_.port, std::move(pair.second), Limits{}, pool_),
                queued_bytes_max);
  }
  std::unique_ptr<TwoParty> overAPipe() {
    auto pipe = kj::newTwoWayPipe();
    return over(wrapStream(kj::mv(pipe.ends[0])), wrapStream(kj::mv(pipe.ends[1])));
  }
  std::string next(TwoParty& two) { return receive(reactor_, *two.down); }
  void keepsTheOrder(TwoParty& two, uint64_t seed);

  Reactor reactor_;
  const std::shared_ptr<BufferPool> pool_ = BufferPool::create();
};

void TwoPartyTest::keepsTheOrder(TwoParty& two, uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  std::vector<std::string> sent;
  for (int i = 0; i < 400; ++i) {
    // Messages that are copied, that are sent in place, and that exceed a segment or a read.
    constexpr size_t kSizes[] = {1, 100, 511, 600, 9'000, 17'000, 70'000, 300'000};
    const size_t bytes = kSizes[random.below(std::size(kSizes))];
    const char mark = static_cast<char>('a' + i % 26);
    send(*two.up, mark, bytes, static_cast<kj::uint>(random.below(200)));
    sent.push_back(mark + std::to_string(bytes));
    while (!sent.empty() && random.below(10) == 0) {
      EXPECT_EQ(next(two), sent.front());
      sent.erase(sent.begin());
    }
  }
  for (const std::string& each : sent) EXPECT_EQ(next(two), each);
  EXPECT_EQ(two.client.queuedBytes(), 0u);
}

TEST_F(TwoPartyTest, KeepsTheOrderOfSmallAndLargeMessages) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    keepsTheOrder(*overSockets(), seed);
    keepsTheOrder(*overAPipe(), seed);
  }
}

TEST_F(TwoPartyTest, CountsWhatThePeerHasNotTaken) {
  const auto two = overSockets();
  for (int i = 0; i < 10; ++i) send(*two->up, 'x', 1 << 20);
  EXPECT_GE(two->client.queuedBytes(), 9u << 20);  // the first message is in the stream
  EXPECT_LT(two->client.queuedBytes(), (9u << 20) + (16u << 10)) << "and the messages themselves";
  for (int i = 0; i < 10; ++i) next(*two);
  runUntil(reactor_, [&] { return two->client.queuedBytes() == 0; });
}

TEST_F(TwoPartyTest, NothingIsReceivedFromAPeerThatDoesNotRead) {
  constexpr uint64_t kQueuedMax = 64 << 10;
  const auto two = overSockets(kQueuedMax);
  size_t sent = 0;
  for (; two->server.queuedBytes() <= kQueuedMax; ++sent) send(*two->down, 'd', 10'000);
  send(*two->up, 'u', 100);
  bool received = false;
  auto receiving = two->down->receiveIncomingMessage()
                       .then([&](auto&&) { received = true; })
                       .eagerlyEvaluate(nullptr);
  reactor_.timer.afterDelay(20 * kj::MILLISECONDS).wait(reactor_.wait_scope);
  EXPECT_FALSE(received);
  for (; sent > 0; --sent) EXPECT_EQ(receive(reactor_, *two->up), "d10000");
  waitFor(reactor_, kj::mv(receiving));
  EXPECT_TRUE(received) << "once the peer reads, it is heard again";
}

TEST_F(TwoPartyTest, ShutdownComesAfterWhatWasSent) {
  for (const bool sockets : {true, false}) {
    const auto two = sockets ? overSockets() : overAPipe();
    send(*two->up, 'a', 500'000);
    send(*two->up, 'b', 10);
    auto done = two->up->shutdown().eagerlyEvaluate(nullptr);
    EXPECT_EQ(next(*two), "a500000");
    EXPECT_EQ(next(*two), "b10");
    EXPECT_EQ(next(*two), "end");
    waitFor(reactor_, kj::mv(done));
    EXPECT_NO_THROW(waitFor(reactor_, two->up->shutdown())) << "an RPC system may ask again";
    EXPECT_ANY_THROW(send(*two->up, 'c', 1));
  }
}

TEST_F(TwoPartyTest, IsDisconnectedWhenTheLastPointerIsGone) {
  const auto two = overSockets();
  auto again = connectTo(two->client, Side::SERVER);
  EXPECT_EQ(again.get(), two->up.get()) << "one connection, one state in the RPC layer";
  auto gone = two->client.onDisconnect();
  two->up = nullptr;
  EXPECT_FALSE(gone.poll(reactor_.wait_scope));
  again = nullptr;
  waitFor(reactor_, kj::mv(gone));
}

TEST_F(TwoPartyTest, HasOneConnectionToTheOtherSide) {
  const auto two = overSockets();
  EXPECT_EQ(connectTo(two->client, Side::CLIENT).get(), nullptr);
  EXPECT_EQ(two->up->getPeerVatId().getSide(), Side::SERVER);
  EXPECT_FALSE(two->server.accept().poll(reactor_.wait_scope));
  EXPECT_FALSE(two->client.accept().poll(reactor_.wait_scope));
}

// Accepts no write, and blocks every read for ever.
class BrokenStream final : public MessageStream {
 public:
  explicit BrokenStream(bool throws) : throws_(throws) {}
  bool writeNow(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>) override { return false; }
  kj::Maybe<kj::Own<capnp::MessageReader>> takeReady(capnp::ReaderOptions) override {
    return nullptr;
  }
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd>, capnp::ReaderOptions, kj::ArrayPtr<capnp::word>) override {
    return kj::NEVER_DONE;
  }
  kj::Promise<void> writeMessage(kj::ArrayPtr<const int>,
                                 kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>) override {
    if (throws_) kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the cable is cut"));
    return KJ_EXCEPTION(DISCONNECTED, "the cable is cut");
  }
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>>) override {
    return KJ_EXCEPTION(DISCONNECTED, "the cable is cut");
  }
  kj::Maybe<int> getSendBufferSize() override { return nullptr; }
  kj::Promise<void> end() override { return kj::READY_NOW; }
  void keepUntilWritten(const void*, std::shared_ptr<const void>) override {}
  std::shared_ptr<const void> pin(const void*) override { return nullptr; }
  void setLimits(const Limits&) override {}
  uint64_t queuedBytes() const override { return 0; }
  Traffic traffic() const override { return {}; }
  std::string violation() const override { return {}; }
  bool isOnThisHost() const override { return false; }
  std::string certifiedPeer() const override { return {}; }

 private:
  const bool throws_;
};

TEST_F(TwoPartyTest, AFailedWriteFailsTheReadingSide) {
  for (const bool throws : {false, true}) {
    TwoParty two(reactor_, kj::heap<BrokenStream>(throws), kj::heap<BrokenStream>(throws));
    auto waiting = two.up->receiveIncomingMessage();
    send(*two.up, 'a', 10);
    send(*two.up, 'b', 10);
    for (int i = 0; i < 2; ++i) {
      const kj::Exception error = failureOf(reactor_, kj::mv(waiting));
      EXPECT_EQ(error.getType(), kj::Exception::Type::DISCONNECTED);
      EXPECT_STREQ(error.getDescription().cStr(), "the cable is cut");
      waiting = two.up->receiveIncomingMessage();
    }
    send(*two.up, 'c', 10);  // go nowhere, like everything after a failure
    send(*two.up, 'd', 10);
    runUntil(reactor_, [&] { return two.client.queuedBytes() == 0; });
  }
}

}  // namespace
}  // namespace dtf::net::testing
