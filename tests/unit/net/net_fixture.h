#pragma once

// Sockets, servers and clients for the tests of common/net: real TCP on loopback, ports chosen by
// the kernel.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <list>
#include <string>
#include <utility>

#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/socket_options.h"
#include "tests/unit/net/echo_server.h"

namespace dtf::net::testing {

using namespace std::chrono_literals;

// No test hangs: each wait is bounded.
inline constexpr auto kPatience = 20 * kj::SECONDS;

template <class T>
T waitFor(Reactor& reactor, kj::Promise<T> promise) {
  return reactor.timer.timeoutAfter(kPatience, kj::mv(promise)).wait(reactor.wait_scope);
}

// Runs `reactor` until `condition` holds.
template <class Condition>
void runUntil(Reactor& reactor, Condition condition) {
  const auto deadline = reactor.timer.now() + kPatience;
  while (!condition()) {
    ASSERT_TRUE(reactor.timer.now() < deadline) << "waited in vain";
    reactor.timer.afterDelay(1 * kj::MILLISECONDS).wait(reactor.wait_scope);
  }
}

// The error that `promise` rejects with.
template <class T>
kj::Exception failureOf(Reactor& reactor, kj::Promise<T> promise) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { waitFor(reactor, kj::mv(promise)); }))
    return *exception;
  ADD_FAILURE() << "the promise succeeded";
  return kj::Exception(kj::Exception::Type::FAILED, "", 0, kj::str("none"));
}

inline std::pair<Socket, Socket> connectedPair(asio::io_context& ioc) {
  asio::local::stream_protocol::socket one(ioc), two(ioc);
  asio::local::connect_pair(one, two);
  return {Socket(std::move(one)), Socket(std::move(two))};
}

// A plain blocking client socket: what a stranger uses.
inline Fd connectRaw(uint16_t tcp_port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(tcp_port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const timeval patience{20, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  return fd;
}

inline void sendRaw(const Fd& fd, const void* data, size_t bytes) {
  EXPECT_EQ(::send(fd.get(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}

inline void sendPreamble(const Fd& fd, ConnectionKind kind = ConnectionKind::kControl) {
  const auto preamble = makePreamble(kind);
  sendRaw(fd, preamble.data(), preamble.size());
}

// Resident memory of this process in bytes.
inline size_t residentBytes() {
  size_t total = 0, resident = 0;
  if (FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%zu %zu", &total, &resident) != 2) resident = 0;
    std::fclose(statm);
  }
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// Accepts connections and serves Echo on them until the peers go.
class EchoHost {
 public:
  explicit EchoHost(AsioEventPort& port, size_t store_bytes = 1 << 20, const Limits& limits = {})
      : port_(port), limits_(limits) {
    store_.size = store_bytes;
    store_.bytes = makePattern(*pool_, store_bytes);
  }
  void serve(Fd fd, std::string peer = "test") {
    auto stream =
        kj::heap<AsioMessageStream>(port_, adoptSocket(port_.ioc(), std::move(fd)), limits_, pool_);
    auto connection = kj::heap<RpcConnection>(kj::mv(stream), makeEcho(store_),
                                              RpcOptions{.peer = std::move(peer)});
    ++open_;
    auto gone = connection->onDisconnect();
    sessions_.add(gone.attach(kj::mv(connection)).then([this] { --open_; }));
    port_.schedule();
  }
  Listener::OnConnection onConnection() {
    return
        [this](Fd fd, ConnectionKind, std::string peer) { serve(std::move(fd), std::move(peer)); };
  }
  EchoStore& store() { return store_; }
  BufferPool& pool() { return *pool_; }
  int openCount() const { return open_; }

 private:
  struct Ignore final : kj::TaskSet::ErrorHandler {
    void taskFailed(kj::Exception&&) override {}
  };
  AsioEventPort& port_;
  const Limits limits_;
  const std::shared_ptr<BufferPool> pool_ = BufferPool::create();
  EchoStore store_;
  int open_ = 0;
  Ignore ignore_;
  kj::TaskSet sessions_{ignore_};
};

// A client connection over a connected socket.
struct EchoConnection {
  EchoConnection(AsioEventPort& port, Socket socket,
                 std::shared_ptr<BufferPool> pool = BufferPool::create())
      : connection(kj::heap<RpcConnection>(
            kj::heap<AsioMessageStream>(port, std::move(socket), Limits{}, std::move(pool)),
            RpcOptions{.peer = "server"})),
        echo(connection->bootstrap().castAs<Echo>()) {}
  MessageStream& stream() { return connection->stream(); }
  kj::Own<RpcConnection> connection;
  Echo::Client echo;
};

}  // namespace dtf::net::testing
