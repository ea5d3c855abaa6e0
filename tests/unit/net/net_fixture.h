#pragma once

// Sockets, servers and clients for the tests of common/net: real TCP on loopback, on ports that the
// kernel chooses.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "common/net/socket_options.h"
#include "tests/unit/net/echo_host.h"

namespace dtf::net::testing {

using namespace std::chrono_literals;

// Bounds each wait, so that no test hangs.
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

// Returns the error that `promise` rejects with.
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

// A plain blocking client socket, for a stranger. `from`: another of loopback's addresses, in place
// of another host's.
inline Fd connectRaw(uint16_t tcp_port, const char* from = "127.0.0.1") {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, from, &address.sin_addr), 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
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

}  // namespace dtf::net::testing
