// Connections that a listener rejects, and those that wait for their preamble.

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/unit/net/listener_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;

class AcceptorTest : public ListenerTest {
 protected:
  ~AcceptorTest() noexcept override {}  // gtest's may not throw, kj's may
};

TEST_F(AcceptorTest, APreambleMayComeInPieces) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect());
  const Fd fd = connectRaw(listener.port());
  const auto preamble = makePreamble(ConnectionKind::kControl);
  for (const std::byte& byte : preamble) {
    EXPECT_TRUE(accepted_.empty());
    sendRaw(fd, &byte, 1);
    reactor_.timer.afterDelay(1 * kj::MILLISECONDS).wait(reactor_.wait_scope);
  }
  runUntil(reactor_, [&] { return accepted_.size() == 1; });
}

TEST_F(AcceptorTest, RefusesStrangersWithOneLineThatSaysWhatTheySent) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect());
  const Fd fd = connectRaw(listener.port());
  sendRaw(fd, "GET / HTTP/1.1\r\n\r\n", 18);
  const std::string line = logUntilClosed(fd);
  EXPECT_THAT(line, HasSubstr("event=connection_refused peer=" + localName(fd.get())));
  EXPECT_THAT(line, HasSubstr("reason=\"an HTTP request\""));
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(AcceptorTest, RefusesASilentConnectionAfterTheDeadline) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect(), {.preamble_deadline = 20ms});
  const Fd fd = connectRaw(listener.port());
  sendRaw(fd, "DTF", 3);
  EXPECT_THAT(logUntilClosed(fd), HasSubstr("within 20 ms"));
  EXPECT_EQ(listener.pendingCount(), 0u);
}

TEST_F(AcceptorTest, BoundsTheConnectionsThatOweAPreamble) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect(), {.pending_max = 3});
  std::vector<Fd> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(connectRaw(listener.port()));
  runUntil(reactor_, [&] { return listener.pendingCount() == 3; });
  const Fd fourth = connectRaw(listener.port());
  EXPECT_THAT(logUntilClosed(fourth), HasSubstr("3 connections have sent no preamble yet"));
  sendPreamble(silent[0]);
  runUntil(reactor_, [&] { return accepted_.size() == 1; });
}

// Otherwise strangers that send nothing would shut everybody out until their preamble's deadline.
TEST_F(AcceptorTest, WhoComesTakesThePlaceOfTheOldestThatIsSilent) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect(),
                    {.preamble_deadline = 1h, .pending_max = 3, .pending_spared = 0ms});
  std::vector<Fd> silent;
  for (size_t i = 0; i < 3; ++i) {
    silent.push_back(connectRaw(listener.port()));
    runUntil(reactor_, [&] { return listener.pendingCount() == i + 1; });
  }
  const Fd task = connectRaw(listener.port());
  EXPECT_THAT(logUntilClosed(silent[0]),
              HasSubstr("peer=" + localName(silent[0].get()) +
                        " reason=\"3 connections have sent no preamble yet, this one for "));
  EXPECT_EQ(listener.pendingCount(), 3u);
  sendPreamble(task);
  runUntil(reactor_, [&] { return accepted_.size() == 1; });
  EXPECT_EQ(accepted_[0].peer, localName(task.get()));
}

// Another of this host's addresses stands for another host.
TEST_F(AcceptorTest, OneAddressAloneTakesNotAllPlaces) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect(),
                    {.pending_max = 3, .pending_of_address_max = 2, .pending_spared = 1h});
  std::vector<Fd> silent;
  for (int i = 0; i < 2; ++i) silent.push_back(connectRaw(listener.port()));
  runUntil(reactor_, [&] { return listener.pendingCount() == 2; });
  const Fd third = connectRaw(listener.port());
  EXPECT_THAT(logUntilClosed(third),
              HasSubstr("2 connections from 127.0.0.1 have sent no preamble yet"));
  const Fd elsewhere = connectRaw(listener.port(), "127.0.0.2");
  sendPreamble(elsewhere);
  runUntil(reactor_, [&] { return accepted_.size() == 1; });
}

TEST_F(AcceptorTest, AFloodOfJunkDoesNotFloodTheLog) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 60; ++i) {
    const Fd fd = connectRaw(listener.port());
    sendRaw(fd, "0123456789abcdefXYZ", 19);
    char byte;
    runUntil(reactor_,
             [&] { return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN; });
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_GE(std::ranges::count(log, '\n'), 5);
  EXPECT_LE(std::ranges::count(log, '\n'), 30);
}

TEST_F(AcceptorTest, SurvivesRunningOutOfDescriptors) {
  Listener listener(reactor_.port, "127.0.0.1", 0, collect(), {.retry_delay = 5ms});
  const Fd client = connectRaw(listener.port());
  sendPreamble(client);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd highest(::dup(client.get()));
  const rlimit full{static_cast<rlim_t>(highest.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  reactor_.timer.afterDelay(30 * kj::MILLISECONDS).wait(reactor_.wait_scope);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(accepted_.empty());
  runUntil(reactor_, [&] { return accepted_.size() == 1; });
}

// Otherwise strangers that hold every descriptor would shut everybody out for the retry's delay and
// longer. The wait ends when one of them goes, or is closed.
TEST_F(AcceptorTest, WhoWaitsForADescriptorGetsThatOfASilentConnection) {
  for (const bool goes : {true, false}) {
    SCOPED_TRACE(goes);
    accepted_.clear();
    Listener listener(reactor_.port, "127.0.0.1", 0, collect(),
                      {.preamble_deadline = 1h,
                       .pending_spared = goes ? Duration(1h) : Duration(0),
                       .retry_delay = 1h});
    Fd silent = connectRaw(listener.port());
    runUntil(reactor_, [&] { return listener.pendingCount() == 1; });
    const Fd task = connectRaw(listener.port());
    sendPreamble(task);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const Fd next(::dup(task.get()));  // the lowest free number
    const rlimit full{static_cast<rlim_t>(next.get()), before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
    reactor_.timer.afterDelay(1 * kj::MILLISECONDS).wait(reactor_.wait_scope);
    if (goes) {
      EXPECT_TRUE(accepted_.empty());
      silent = Fd();
    }
    runUntil(reactor_, [&] { return accepted_.size() == 1; });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(accepted_[0].peer, localName(task.get()));
  }
}

}  // namespace
}  // namespace dtf::net::testing
