#include "common/net/socket_options.h"

#include <netinet/tcp.h>

#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t bytes = sizeof(value);
  ::getsockopt(fd, level, name, &value, &bytes);
  return value;
}

TEST(SocketOptions, SetsNoDelayAndTheSilenceLimits) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
  setSocketOptions(fd.get(), {.keepalive_idle = 7s, .unacknowledged_max = 1500ms});
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(fd.get(), SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE), 7);
  EXPECT_EQ(option(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), 1500);
}

TEST(SocketOptions, NothingIsPacedInsideOneMachine) {
  const auto algorithm = [](int fd) {
    char name[32] = {};
    socklen_t bytes = sizeof(name);
    ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &bytes);
    return std::string(name);
  };
  Reactor reactor;
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [](AcceptedSocket, ConnectionKind, std::string) {});
  const Fd fd = connectRaw(listener.port());
  const auto choose = [&fd](std::string_view name) {
    return ::setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                        static_cast<socklen_t>(name.size())) == 0;
  };
  if (!choose("reno")) GTEST_SKIP() << "this machine allows no choice of congestion control";
  if (!choose("bbr") && !choose("cubic")) GTEST_SKIP() << "this machine has nothing but reno";
  setSocketOptions(fd.get());
  EXPECT_EQ(algorithm(fd.get()), "reno");
  const Fd unconnected(::socket(AF_INET, SOCK_STREAM, 0));
  const std::string before = algorithm(unconnected.get());
  setSocketOptions(unconnected.get());
  EXPECT_EQ(algorithm(unconnected.get()), before);
}

TEST(SocketOptions, NamesBothEndsOfAConnection) {
  Reactor reactor;
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [](AcceptedSocket, ConnectionKind, std::string) {});
  const Fd fd = connectRaw(listener.port());
  EXPECT_EQ(peerName(fd.get()), "127.0.0.1:" + std::to_string(listener.port()));
  EXPECT_EQ(localName(fd.get()).rfind("127.0.0.1:", 0), 0u);
  auto pair = connectedPair(reactor.ioc);
  EXPECT_EQ(peerName(pair.first.native_handle()), "unix");
}

TEST(SocketOptions, SaysWhetherBothEndsAreHere) {
  Reactor reactor;
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [](AcceptedSocket, ConnectionKind, std::string) {});
  const Fd fd = connectRaw(listener.port());
  EXPECT_TRUE(hasBothEndsHere(fd.get()));
  auto pair = connectedPair(reactor.ioc);
  EXPECT_TRUE(hasBothEndsHere(pair.first.native_handle()));
  EXPECT_FALSE(hasBothEndsHere(Fd(::socket(AF_INET, SOCK_STREAM, 0)).get())) << "not connected";
  // A host's own name may resolve to another address of its loopback.
  const Fd other(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(listener.port());
  ASSERT_EQ(::connect(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(hasBothEndsHere(other.get()));
}

TEST(SocketOptions, ASocketMovesFromOneLoopToAnother) {
  Reactor reactor;
  auto pair = connectedPair(reactor.ioc);
  Fd released = releaseSocket(pair.first);
  IoThread other("other-io");
  other.call([&] {
    Socket adopted = adoptSocket(other.reactor().ioc, std::move(released));
    asio::write(adopted, asio::buffer("hi", 2));
  });
  char got[2];
  asio::read(pair.second, asio::buffer(got));
  EXPECT_EQ(std::string(got, 2), "hi");
}

TEST(SocketOptions, AdoptingSomethingElseIsAnError) {
  Reactor reactor;
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const Fd writer(pipe_ends[1]);
  EXPECT_THROW(adoptSocket(reactor.ioc, Fd(pipe_ends[0])), Error);
}

}  // namespace
}  // namespace dtf::net::testing
