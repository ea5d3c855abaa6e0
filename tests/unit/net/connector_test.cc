#include "common/net/connector.h"

#include <gmock/gmock.h>

#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

// A port that nobody listens on, reserved by a bound socket so that nobody else gets it meanwhile.
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

TEST(Connector, ConnectsAndSendsThePreamble) {
  Reactor reactor;
  ConnectionKind kind{};
  Listener listener(reactor.port, "127.0.0.1", 0,
                    [&](Fd, ConnectionKind k, std::string) { kind = k; });
  const Socket socket = waitFor(reactor, connectToPeer(reactor.port, "localhost", listener.port(),
                                                       {.kind = ConnectionKind::kBulk}));
  EXPECT_TRUE(socket.is_open());
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
  EXPECT_TRUE(waitFor(reactor, kj::mv(socket)).is_open());
}

TEST(Connector, GivesUpAtTheDeadlineAndSaysWhy) {
  Reactor reactor;
  ReservedPort reserved;
  const Error error =
      toError(failureOf(reactor, connectToPeer(reactor.port, "localhost", reserved.port,
                                               {.peer_name = "ps/0", .deadline = 60ms})));
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

// A listener whose queue is full leaves a connect hanging; an attempt is bounded all the same.
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
