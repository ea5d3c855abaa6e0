#include "common/net/rpc_connection.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/support/sizes.h"
#include "tests/unit/net/net_fixture.h"

// The real RPC system on our streams: TCP on loopback, one loop for both sides unless a test has
// two.

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

class RpcTest : public ::testing::Test {
 protected:
  ~RpcTest() noexcept override {}  // gtest's may not throw, kj's may
  explicit RpcTest(size_t store_bytes = kMiB)
      : host_(reactor_.port, store_bytes),
        listener_(reactor_.port, "127.0.0.1", 0, host_.onConnection()) {}

  Socket connect() {
    Fd fd = connectRaw(listener_.port());
    sendPreamble(fd);
    return adoptSocket(reactor_.ioc, std::move(fd));
  }

  Reactor reactor_;
  EchoHost host_;
  Listener listener_;
};

class BulkRpcTest : public RpcTest {
 protected:
  BulkRpcTest() : RpcTest(64 * kMiB) {}
  ~BulkRpcTest() noexcept override {}
};

TEST_F(RpcTest, Pings) {
  EchoConnection client(reactor_.port, connect());
  waitFor(reactor_, client.echo.pingRequest().send().ignoreResult());
  auto request = client.echo.echoRequest();
  request.setText("hello");
  EXPECT_STREQ(waitFor(reactor_, request.send()).getText().cStr(), "hello");
}

TEST_F(RpcTest, PipelinesManyCalls) {
  EchoConnection client(reactor_.port, connect());
  kj::Vector<kj::Promise<void>> calls;
  for (int i = 0; i < 2000; ++i) {
    auto request = client.echo.echoRequest();
    request.setText(std::to_string(i).c_str());
    calls.add(request.send().then([i](auto&& response) {
      EXPECT_EQ(std::string(response.getText().cStr()), std::to_string(i));
    }));
  }
  waitFor(reactor_, kj::joinPromises(calls.releaseAsArray()));
}

TEST_F(BulkRpcTest, Pulls64MiBByReference) {
  EchoConnection client(reactor_.port, connect());
  const auto response = waitFor(reactor_, pull(client.echo, 0, 64 * kMiB));
  const auto data = response.getData();
  ASSERT_EQ(data.size(), 64 * kMiB);
  EXPECT_EQ(std::memcmp(data.begin(), host_.store().bytes.get(), data.size()), 0);
  EXPECT_EQ(host_.store().bytes.use_count(), 1) << "the snapshot's owner was released";
}

TEST_F(BulkRpcTest, Pushes64MiBByReferenceAndTheServerKeepsThemWithoutACopy) {
  EchoConnection client(reactor_.port, connect());
  const auto& bytes = host_.store().bytes;
  const uint64_t expected = checksum(bytes.get(), 64 * kMiB);
  EXPECT_EQ(
      waitFor(reactor_, push(client.echo, client.stream(), bytes.get(), 64 * kMiB, bytes, true)),
      expected);
  EXPECT_EQ(bytes.use_count(), 1) << "the gradient's owner was released";
  waitFor(reactor_, push(client.echo, client.stream(), bytes.get(), 64 * kMiB, bytes));
  EXPECT_EQ(waitFor(reactor_, client.echo.pinnedChecksumRequest().send()).getChecksum(), expected);
}

TEST_F(RpcTest, ACancelledCallCancelsTheServersWork) {
  EchoConnection client(reactor_.port, connect());
  {
    auto call = client.echo.neverRequest().send();
    waitFor(reactor_, client.echo.pingRequest().send().ignoreResult());
  }
  runUntil(reactor_, [&] { return host_.store().cancelled_calls == 1; });
}

TEST_F(RpcTest, AnErrorKeepsItsCodeAndMessage) {
  EchoConnection client(reactor_.port, connect());
  auto request = client.echo.failRequest();
  request.setCode(static_cast<int>(ErrorCode::kBadConfig));
  request.setMessage("the model differs from worker/0's");
  const Error error = toError(failureOf(reactor_, request.send().ignoreResult()));
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_EQ(error.message(), "the model differs from worker/0's");
}

TEST_F(RpcTest, DisconnectEndsCallsAndSessions) {
  EchoConnection client(reactor_.port, connect());
  auto call = client.echo.neverRequest().send().ignoreResult();
  waitFor(reactor_, client.echo.pingRequest().send().ignoreResult());
  client.connection = nullptr;
  EXPECT_EQ(toError(failureOf(reactor_, kj::mv(call))).code(), ErrorCode::kUnavailable);
  runUntil(reactor_, [&] { return host_.openCount() == 0; });
  EXPECT_EQ(host_.store().cancelled_calls, 1);
}

TEST_F(RpcTest, AServerThatClosesIsSaidToHaveClosed) {
  auto sockets = connectedPair(reactor_.ioc);
  EchoStore store;
  auto server = std::make_unique<RpcConnection>(
      kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets.second), Limits{},
                                  BufferPool::create()),
      makeEcho(store), RpcOptions{.peer = "worker/1"});
  EchoConnection client(reactor_.port, std::move(sockets.first));
  auto call = client.echo.neverRequest().send().ignoreResult();
  waitFor(reactor_, client.echo.pingRequest().send().ignoreResult());
  server = nullptr;
  const Error error = toError(failureOf(reactor_, kj::mv(call)));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "the connection was lost: the peer closed it");
}

TEST_F(RpcTest, QueuedBytesShowWhatThePeerHasNotTaken) {
  RpcConnection* session = nullptr;
  EchoStore store{makePattern(host_.pool(), 16 * kMiB), 16 * kMiB};
  auto sockets = connectedPair(reactor_.ioc);
  RpcConnection server(
      kj::heap<AsioMessageStream>(reactor_.port, std::move(sockets.second), Limits{},
                                  BufferPool::create()),
      [&](RpcConnection& connection) -> capnp::Capability::Client {
        session = &connection;
        return kj::heap<EchoServer>(store, connection);
      },
      RpcOptions{.peer = "worker/1"});
  EXPECT_EQ(session, &server);
  EXPECT_EQ(server.peer(), "worker/1");
  EchoConnection client(reactor_.port, std::move(sockets.first));
  auto one = pull(client.echo, 0, 16 * kMiB), two = pull(client.echo, 0, 16 * kMiB);
  uint64_t queued_max = 0;
  bool done = false;
  auto both = one.ignoreResult()
                  .then([&two] { return two.ignoreResult(); })
                  .then([&done] { done = true; })
                  .eagerlyEvaluate(nullptr);
  while (!done) {  // one Asio handler at a time
    reactor_.ioc.run_one();
    queued_max = std::max(queued_max, server.queuedBytes());
  }
  EXPECT_GE(queued_max, 16 * kMiB);
  EXPECT_EQ(server.queuedBytes(), 0u);
}

// A frozen peer sends nothing, for ever: only our deadline ends the call.
TEST_F(RpcTest, AFrozenPeerIsNoticedByTheDeadline) {
  Fd listening(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  sockaddr_in address{};
  socklen_t bytes = sizeof(address);
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  EchoConnection client(reactor_.port,
                        adoptSocket(reactor_.ioc, connectRaw(ntohs(address.sin_port))));
  auto call = reactor_.timer.timeoutAfter(30 * kj::MILLISECONDS,
                                          client.echo.pingRequest().send().ignoreResult());
  EXPECT_EQ(toError(failureOf(reactor_, kj::mv(call))).code(), ErrorCode::kDeadline);
}

TEST_F(RpcTest, APeerThatDiesInTheMiddleOfAPushIsADisconnect) {
  auto sockets = connectedPair(reactor_.ioc);
  const Fd peer = releaseSocket(sockets.second);
  EchoConnection client(reactor_.port, std::move(sockets.first));
  auto bytes = makePattern(host_.pool(), 32 * kMiB);
  const std::weak_ptr<std::byte> alive = bytes;
  const std::byte* data = bytes.get();
  auto call = push(client.echo, client.stream(), data, 32 * kMiB, std::move(bytes))
                  .eagerlyEvaluate(nullptr);
  reactor_.timer.afterDelay(2 * kj::MILLISECONDS).wait(reactor_.wait_scope);
  char some[4096];
  ASSERT_GT(::recv(peer.get(), some, sizeof(some), 0), 0);
  EXPECT_FALSE(alive.expired());
  ::shutdown(peer.get(), SHUT_RDWR);
  EXPECT_EQ(toError(failureOf(reactor_, kj::mv(call))).code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(alive.expired());
  EXPECT_EQ(toError(failureOf(reactor_, client.echo.pingRequest().send().ignoreResult())).code(),
            ErrorCode::kUnavailable);
}

// Like the test above, with a real process and SIGKILL. The child serves; it closes its copies of
// all but the listening socket.
TEST(RpcKill, AKilledServerIsADisconnect) {
  Fd listening(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  sockaddr_in address{};
  socklen_t bytes = sizeof(address);
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Reactor reactor;
    EchoHost host(reactor.port);
    Listener listener(reactor.port, std::move(listening), host.onConnection());
    reactor.run();
    ::_exit(0);
  }
  listening.reset();
  Reactor reactor;
  Fd fd = connectRaw(ntohs(address.sin_port));
  sendPreamble(fd);
  EchoConnection client(reactor.port, adoptSocket(reactor.ioc, std::move(fd)));
  waitFor(reactor, client.echo.pingRequest().send().ignoreResult());
  auto gone = client.connection->onDisconnect();
  const auto pool = BufferPool::create();
  const auto data = makePattern(*pool, 64 * kMiB);
  ::kill(child, SIGSTOP);
  auto call =
      push(client.echo, client.stream(), data.get(), 64 * kMiB, data).eagerlyEvaluate(nullptr);
  reactor.timer.afterDelay(2 * kj::MILLISECONDS).wait(reactor.wait_scope);
  ::kill(child, SIGKILL);
  EXPECT_EQ(toError(failureOf(reactor, kj::mv(call))).code(), ErrorCode::kUnavailable);
  waitFor(reactor, kj::mv(gone));
  EXPECT_EQ(data.use_count(), 1);
  ::waitpid(child, nullptr, 0);
}

TEST(RpcThreads, AConnectionIsServedByAnotherThreadThanTheListeners) {
  kj::Own<EchoHost> host;  // these two live and die on the threads' loops
  std::unique_ptr<Listener> listener;
  IoThread serving("serve-io");
  IoThread accepting("accept-io");
  serving.call([&] { host = kj::heap<EchoHost>(serving.port(), 4 * kMiB); });
  serving.onStop([&] { host = nullptr; });
  accepting.call([&] {
    listener = std::make_unique<Listener>(
        accepting.port(), "localhost", 0, [&](AcceptedSocket fd, ConnectionKind kind, std::string) {
          EXPECT_EQ(kind, ConnectionKind::kBulk);
          auto moved = std::make_shared<AcceptedSocket>(std::move(fd));
          serving.post([&host, moved] { host->serve(std::move(*moved)); });
        });
  });
  accepting.onStop([&] { listener.reset(); });
  Reactor reactor;
  Fd fd = connectRaw(listener->port());
  sendPreamble(fd, ConnectionKind::kBulk);
  EchoConnection client(reactor.port, adoptSocket(reactor.ioc, std::move(fd)));
  EXPECT_EQ(waitFor(reactor, pull(client.echo, 0, 4 * kMiB)).getData().size(), 4 * kMiB);
}

// A whole client and server on a kj pipe, as the simulation runs them.
TEST(RpcPipe, RunsOverAnInMemoryPipe) {
  Reactor reactor;
  const auto pool = BufferPool::create();
  EchoStore store{makePattern(*pool, kMiB), kMiB};
  auto pipe = kj::newTwoWayPipe();
  auto server =
      kj::heap<RpcConnection>(wrapStream(kj::mv(pipe.ends[0])), makeEcho(store), RpcOptions{});
  RpcConnection client(wrapStream(kj::mv(pipe.ends[1])), RpcOptions{});
  auto echo = client.bootstrap().castAs<Echo>();
  EXPECT_EQ(waitFor(reactor, pull(echo, 0, kMiB)).getData().size(), kMiB);
  EXPECT_EQ(store.bytes.use_count(), 1);
  EXPECT_EQ(
      waitFor(reactor, push(echo, client.stream(), store.bytes.get(), kMiB, store.bytes, true)),
      checksum(store.bytes.get(), kMiB));
  EXPECT_EQ(waitFor(reactor, echo.pinnedChecksumRequest().send()).getChecksum(),
            checksum(store.bytes.get(), kMiB));
  server = nullptr;
  EXPECT_EQ(toError(failureOf(reactor, echo.pingRequest().send().ignoreResult())).code(),
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace dtf::net::testing
