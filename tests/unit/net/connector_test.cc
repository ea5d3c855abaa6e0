#include "common/net/connector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

// A port without a listener; a bound socket reserves it, so that no other process gets it.
struct ReservedPort {
  ReservedPort() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    socklen_t bytes = sizeof(address);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    port = ntohs(address.sin_port);
  }
  Fd fd;
  uint16_t port = 0;
};

bool writeFile(const char* path, const char* text) {
  const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return ::write(fd.get(), text, std::strlen(text)) == static_cast<ssize_t>(std::strlen(text));
}

constexpr uint16_t kOnlyPort = 40000;

// Moves this process into a network namespace with one port for clients. Returns false if that
// isn't allowed here.
bool enterNetworkOfOnePort() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_LOOPBACK;
  return ::ioctl(fd.get(), SIOCSIFFLAGS, &loopback) == 0 &&
         writeFile("/proc/sys/net/ipv4/ip_local_port_range", "40000 40000");
}

bool networksAllowed() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(enterNetworkOfOnePort() ? 0 : 1);
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

// In that namespace a connect to the port can only meet itself, once; then the port lingers. Prints
// the error and exits with 0.
[[noreturn]] void connectToItself() {
  if (!enterNetworkOfOnePort()) std::_Exit(1);
  Reactor reactor;
  const Error error = toError(
      failureOf(reactor, connectToPeer(reactor.port, "127.0.0.1", kOnlyPort,
                                       {.deadline = 5s, .backoff_min = 20s, .backoff_max = 20s})));
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::_Exit(0);
}

TEST(ConnectorDeathTest, AConnectThatMeetsItselfIsToldInWordsForPeople) {
  if (!networksAllowed()) GTEST_SKIP() << "no network namespaces for this user";
  EXPECT_EXIT(connectToItself(), ::testing::ExitedWithCode(0), "last error: nobody listens there;");
}

TEST(Connector, ConnectsAndSendsThePreamble) {
  Reactor reactor;
  ConnectionKind kind{};
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [&](AcceptedSocket, ConnectionKind k, std::string) { kind = k; });
  const Transport peer = waitFor(reactor, connectToPeer(reactor.port, "localhost", listener.port(),
                                                        {.kind = ConnectionKind::kBulk}));
  EXPECT_TRUE(peer.socket.is_open());
  runUntil(reactor, [&] { return kind == ConnectionKind::kBulk; });
}

TEST(Connector, RetriesUntilTheServerAppearsAndReportsMeanwhile) {
  Reactor reactor;
  ReservedPort reserved;
  std::string reported;
  auto socket =
      connectToPeer(
          reactor.port, "127.0.0.1", reserved.port,
          {.deadline = 20s,
           .backoff_max = 20ms,
           .report_every = 10ms,
           .on_waiting = [&](std::string last_error, Duration) { reported = last_error; }})
          .eagerlyEvaluate(nullptr);
  runUntil(reactor, [&] { return !reported.empty(); });
  EXPECT_THAT(reported, HasSubstr("Connection refused"));
  ASSERT_EQ(::listen(reserved.fd.get(), 5), 0);
  EXPECT_TRUE(waitFor(reactor, kj::mv(socket)).socket.is_open());
}

TEST(Connector, GivesUpAtTheDeadlineAndSaysWhy) {
  Reactor reactor;
  ReservedPort reserved;
  const Error error =
      toError(failureOf(reactor, connectToPeer(reactor.port, "localhost", reserved.port,
                                               {.peer_name = "ps/0", .deadline = 500ms})));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(),
              HasSubstr("cannot reach ps/0 at localhost:" + std::to_string(reserved.port)));
  EXPECT_THAT(error.message(), HasSubstr("Connection refused"));
}

TEST(Connector, ResolvesNamesAndReportsThoseThatDoNotExist) {
  Reactor reactor;
  const Error error = toError(failureOf(
      reactor, connectToPeer(reactor.port, "no-such-host.invalid", 1, {.deadline = 500ms})));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("no-such-host.invalid"));
}

// A listener with a full queue leaves a connect hanging; an attempt is bounded all the same.
TEST(Connector, AnAttemptThatHangsIsCutOff) {
  Reactor reactor;
  ReservedPort reserved;
  ASSERT_EQ(::listen(reserved.fd.get(), 0), 0);
  std::vector<Fd> fillers;
  for (int i = 0; i < 3; ++i) {
    fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(reserved.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(fillers.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  const Error error =
      toError(failureOf(reactor, connectToPeer(reactor.port, "127.0.0.1", reserved.port,
                                               {.deadline = 80ms, .attempt_max = 30ms})));
  EXPECT_THAT(error.message(), HasSubstr("no answer"));
}

TEST(Connector, DroppedPromiseAbandonsTheAttempt) {
  Reactor reactor;
  ReservedPort reserved;
  for (int i = 0; i < 20; ++i) {
    auto dropped = connectToPeer(reactor.port, "127.0.0.1", reserved.port, {});
    for (int polls = 0; polls < i; ++polls) dropped.poll(reactor.wait_scope);
  }
  reactor.timer.afterDelay(20 * kj::MILLISECONDS).wait(reactor.wait_scope);
}

}  // namespace
}  // namespace dtf::net::testing
