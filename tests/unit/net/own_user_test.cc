#include "common/net/own_user.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "common/net/connector.h"
#include "tests/support/another_user.h"
#include "tests/unit/net/net_fixture.h"

// Real users: this one, and a child that has become another, which only root can.

namespace dtf::net::testing {
namespace {

using dtf::testing::AnotherUser;
using ::testing::HasSubstr;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A blocking socket that listens; port 0: the kernel chooses one. A port is free for a new listener
// while connections of the last one live.
struct Listening {
  explicit Listening(uint16_t at = 0) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(at);
    socklen_t bytes = sizeof(address);
    const int yes = 1;
    EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd.get(), 5), 0);
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    port = ntohs(address.sin_port);
  }
  Fd accept() const { return Fd(::accept4(fd.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  Fd fd;
  uint16_t port = 0;
};

// Runs in the child.
int connectTo(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) ::_exit(2);
  return fd;
}

TEST(OwnUser, ThisUsersSocketsAreKnown) {
  ASSERT_EQ(whyOwnersAreUnknown(), "");
  const Listening listening;
  const Fd client = connectRaw(listening.port);
  EXPECT_EQ(strangerThatListens(client.get()).why, "") << "though nobody has accepted yet";
  const Fd accepted = listening.accept();
  EXPECT_EQ(strangerThatConnects(accepted.get()).why, "");
}

// For a socket without a process, the kernel reports root as the owner.
TEST(OwnUser, WhoHasClosedIsNotTakenForRoot) {
  const Listening listening;
  Fd client = connectRaw(listening.port);
  const Fd accepted = listening.accept();
  client = Fd();
  const Stranger gone = strangerThatConnects(accepted.get());
  EXPECT_EQ(gone.why, "it has closed the connection already");
  EXPECT_TRUE(gone.has_closed);
}

TEST(OwnUser, OfIpv6Too) {
  const Fd listening(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  socklen_t bytes = sizeof(address);
  if (::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    GTEST_SKIP() << "this host has no IPv6 loopback";
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
  Fd client(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(strangerThatListens(client.get()).why, "");
  const Fd accepted(::accept(listening.get(), nullptr, nullptr));
  EXPECT_EQ(strangerThatConnects(accepted.get()).why, "");
  client = Fd();
  EXPECT_NE(strangerThatConnects(accepted.get()).why, "");
}

class OtherUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!dtf::testing::mayBecomeAnotherUser()) GTEST_SKIP() << "only root can become another user";
  }
  ~OtherUser() noexcept override {}  // gtest's may not throw, kj's may
};

// The listener has its default credentials.
TEST_F(OtherUser, IsRefusedByAListener) {
  Reactor reactor;
  int accepted = 0;
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [&](AcceptedSocket, ConnectionKind, std::string) { ++accepted; });
  ::testing::internal::CaptureStderr();
  {
    // The child's end of the connection closes when the listener closes the other one.
    const AnotherUser nobody([port = listener.port()](int tell) {
      const int fd = connectTo(port);
      const auto preamble = makePreamble(ConnectionKind::kControl);
      (void)!::send(fd, preamble.data(), preamble.size(), MSG_NOSIGNAL);
      char byte;
      (void)!::recv(fd, &byte, 1, 0);
      (void)!::write(tell, "x", 1);
    });
    runUntil(reactor, [&] { return nobody.hasTold(); });
    const Fd own = connectRaw(listener.port());
    sendPreamble(own);
    runUntil(reactor, [&] { return accepted == 1; });
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("event=connection_refused peer=127.0.0.1:"));
  EXPECT_THAT(log, HasSubstr("it is a process of user 65534 of this host"));
  EXPECT_EQ(accepted, 1);
}

TEST_F(OtherUser, ThatHasConnectedIsTold) {
  const Listening listening;
  const AnotherUser nobody([port = listening.port](int) { connectTo(port); });
  const Fd accepted = listening.accept();
  EXPECT_THAT(strangerThatConnects(accepted.get()).why,
              HasSubstr("it is a process of user 65534 of this host; without keys, this process of "
                        "user 0 talks only to the same user's and root's"));
}

// A user who takes the port of a task that has ended gets no model.
TEST_F(OtherUser, IsNotConnectedTo) {
  Reactor reactor;
  const AnotherUser nobody([](int tell) {
    static const Listening kTheirs;  // until the child ends
    (void)!::write(tell, &kTheirs.port, sizeof kTheirs.port);
  });
  const auto port = nobody.told<uint16_t>();
  const Transport connected =
      waitFor(reactor, connectToPeer(reactor.port, "127.0.0.1", port,
                                     {.deadline = 2s, .credentials = Credentials::insecure()}));
  EXPECT_TRUE(connected.socket.is_open()) << "an owner that says so may connect to any user";
  const Error error =
      toError(failureOf(reactor, connectToPeer(reactor.port, "127.0.0.1", port, {.deadline = 2s})));
  EXPECT_EQ(error.code(), ErrorCode::kPermission) << error.message();
  EXPECT_THAT(error.message(), HasSubstr("it is a process of user 65534 of this host"));
}

// A stranger listens at a task's port and waits for clients that come before the task.
TEST_F(OtherUser, ThatAcceptedBeforeThePortWasThisUsersIsTold) {
  const AnotherUser nobody([](int tell) {
    Listening theirs;
    (void)!::write(tell, &theirs.port, sizeof theirs.port);
    static const Fd kAccepted = theirs.accept();  // until the child ends
    theirs.fd = Fd();
    (void)!::write(tell, "x", 1);
  });
  const auto port = nobody.told<uint16_t>();
  const Fd client = connectRaw(port);
  nobody.told<char>();  // it has accepted, and listens no more
  EXPECT_EQ(strangerThatListens(client.get()).why, "it doesn't listen any more");
  const Listening own(port);
  ASSERT_EQ(own.port, port);
  EXPECT_THAT(strangerThatListens(client.get()).why,
              HasSubstr("it is a process of user 65534 of this host"));
}

}  // namespace
}  // namespace dtf::net::testing
