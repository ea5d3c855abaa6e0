#include <capnp/message.h>

#include <deque>

#include "common/base/random.h"
#include "tests/unit/net/key_fixture.h"
#include "tests/unit/net/net_fixture.h"

// Promises are dropped at random points. The sequence of messages must stay whole; under ASan, no
// late handler may touch memory that a promise owned.

namespace dtf::net::testing {
namespace {

constexpr uint64_t kSeeds = 4;
constexpr int kRounds = 400;

class StreamFuzz {
 public:
  StreamFuzz(uint64_t seed, Wire wire) : random_(seed), sockets_(pairOf(wire, reactor_.ioc)) {
    sender_ =
        kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets_.first), Limits{}, pool_);
    receiver_ =
        kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets_.second), Limits{}, pool_);
  }

  void run() {
    for (int round = 0; round < kRounds; ++round) {
      if (writes_pending_ < 4) queueWrite();
      random_.below(2) ? dropRead() : receiveOne();
      if (::testing::Test::HasFatalFailure()) return;
    }
    writes_ = nullptr;
    sender_ = nullptr;  // while Asio still has its waits
    for (uint64_t polls = random_.below(20); polls > 0; --polls) reactor_.ioc.poll();
    held_.clear();
    receiver_ = nullptr;
    reactor_.ioc.poll();
  }

 private:
  void queueWrite() {
    ++writes_pending_;
    writes_ = writes_.then([this] { return writeOne(); })
                  .then([this] { --writes_pending_; })
                  .eagerlyEvaluate(nullptr);
  }

  kj::Promise<void> writeOne() {
    const size_t bytes = random_.below(5) == 0 ? random_.below(3'000'000) : random_.below(300);
    auto message = kj::heap<capnp::MallocMessageBuilder>(16);
    auto params = message->initRoot<Echo::PushParams>();
    params.setPin(sent_ % 2);
    const int fill = static_cast<int>(++sent_ & 0xff);
    if (bytes > 0 && random_.below(2)) {
      auto owner = pool_->take(bytes + 8);
      std::memset(owner.get(), fill, bytes + 8);
      params.adoptData(message->getOrphanage().referenceExternalData(
          capnp::Data::Reader(reinterpret_cast<const kj::byte*>(owner.get()), bytes)));
      const void* start = owner.get();
      sender_->keepUntilWritten(start, std::move(owner));
    } else {
      auto data = params.initData(bytes);
      if (bytes > 0) std::memset(data.begin(), fill, bytes);
    }
    auto written = sender_->writeMessage(nullptr, message->getSegmentsForOutput());
    return written.attach(kj::mv(message));
  }

  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> read() {
    return receiver_->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr);
  }

  void pollSome() {
    for (uint64_t polls = random_.below(4); polls > 0; --polls) {
      reactor_.ioc.poll();
      if (random_.below(2)) reactor_.wait_scope.poll();
    }
  }

  // A completed read would lose its message with the promise, as with any kj promise: drops only
  // pending ones.
  void dropRead() {
    auto promise = read();
    if (promise.poll(reactor_.wait_scope)) check(promise.wait(reactor_.wait_scope));
    promise = nullptr;
    pollSome();
  }

  void receiveOne() {
    auto promise = read();
    pollSome();
    check(waitFor(reactor_, kj::mv(promise)));
  }

  void check(kj::Maybe<capnp::MessageReaderAndFds>&& got) {
    auto reader = kj::mv(KJ_ASSERT_NONNULL(got).reader);
    const auto params = reader->getRoot<Echo::PushParams>();
    ASSERT_EQ(params.getPin(), received_ % 2 == 1);
    const auto fill = static_cast<kj::byte>(++received_ & 0xff);
    const auto data = params.getData();
    for (size_t i = 0; i < data.size(); i += 97)
      ASSERT_EQ(data[i], fill) << "message " << received_;
    if (random_.below(3) == 0)
      held_.push_back(std::make_shared<kj::Own<capnp::MessageReader>>(kj::mv(reader)));
    if (held_.size() > 5) held_.pop_front();
  }

  Random random_;
  Reactor reactor_;
  std::shared_ptr<BufferPool> pool_ = BufferPool::create(32 << 20);
  std::pair<Transport, Transport> sockets_;
  kj::Own<AsioMessageStream> sender_;
  kj::Own<AsioMessageStream> receiver_;
  kj::Promise<void> writes_ = kj::READY_NOW;
  int writes_pending_ = 0;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  std::deque<std::shared_ptr<kj::Own<capnp::MessageReader>>> held_;
};

class StreamFuzzTest : public ::testing::TestWithParam<Wire> {};

TEST_P(StreamFuzzTest, DroppedReadsLoseNothing) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StreamFuzz(seed, GetParam()).run();
    if (HasFatalFailure()) return;
  }
}

// Calls of all kinds are dropped at random while in flight; the connection must go on serving.
TEST_P(StreamFuzzTest, DroppedCallsLeaveTheConnectionWorking) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Reactor reactor;
    EchoHost host(reactor.port, 4 << 20);
    auto sockets = pairOf(GetParam(), reactor.ioc);
    host.serve({releaseSocket(sockets.second.socket), std::move(sockets.second.tls)});
    EchoConnection client(reactor.port, std::move(sockets.first));
    const auto bytes = makePattern(host.pool(), 1 << 20);
    for (int round = 0; round < 100; ++round) {
      std::vector<kj::Promise<void>> calls;
      for (uint64_t i = random.below(6); i > 0; --i) {
        switch (random.below(4)) {
          case 0:
            calls.push_back(client.echo.pingRequest().send().ignoreResult());
            break;
          case 1:
            calls.push_back(client.echo.neverRequest().send().ignoreResult());
            break;
          case 2:
            calls.push_back(pull(client.echo, 0, 8 + random.below(4 << 20)).ignoreResult());
            break;
          default:
            calls.push_back(push(client.echo, client.stream(), bytes.get(),
                                 8 * (1 + random.below(128 << 10)), bytes)
                                .ignoreResult());
        }
      }
      for (uint64_t polls = random.below(6); polls > 0; --polls) {
        reactor.ioc.poll();
        reactor.wait_scope.poll();
      }
    }
    waitFor(reactor, client.echo.pingRequest().send().ignoreResult());
    EXPECT_EQ(host.openCount(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, StreamFuzzTest, ::testing::Values(Wire::kPlain, Wire::kTls),
                         wireName);

}  // namespace
}  // namespace dtf::net::testing
