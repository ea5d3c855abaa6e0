#include "common/net/damage.h"

#include <gmock/gmock.h>

#include "tests/unit/net/net_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Damage, IsCountedAndNamed) {
  const uint64_t before = damagedMessages();
  ::testing::internal::CaptureStderr();
  noteDamage("worker/1 (10.0.0.2:5555)", "a message of 8 bytes was damaged on the way");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(damagedMessages(), before + 1);
  EXPECT_THAT(log, AllOf(HasSubstr("warning"),
                         HasSubstr("event=message_damaged peer=\"worker/1 (10.0.0.2:5555)\" "
                                   "reason=\"a message of 8 bytes was damaged on the way\"")));
}

// Passes on the bytes between two ends, and flips a bit of them.
class TurnedOnTheWay : public ::testing::Test {
 protected:
  ~TurnedOnTheWay() noexcept override {}  // gtest's may not throw, kj's may
  TurnedOnTheWay()
      : host_(reactor_.port),
        to_server_(connectedPair(reactor_.ioc)),
        to_client_(connectedPair(reactor_.ioc)) {
    host_.serve({releaseSocket(to_server_.first)}, "worker/1");
    client_ = std::make_unique<EchoConnection>(reactor_.port, std::move(to_client_.first));
  }

  // Passes on the bytes that have arrived; `turned`: the byte whose lowest bit is flipped.
  static size_t pass(Socket& from, Socket& to, std::optional<size_t> turned = std::nullopt) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(from.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return 0;
    if (turned) bytes[*turned % static_cast<size_t>(got)] ^= 1;
    EXPECT_EQ(::send(to.native_handle(), bytes.data(), static_cast<size_t>(got), MSG_NOSIGNAL),
              got);
    return static_cast<size_t>(got);
  }
  void ping() {
    auto answer = client_->echo.pingRequest().send().ignoreResult().eagerlyEvaluate(nullptr);
    runUntil(reactor_, [&] {
      pass(to_client_.second, to_server_.second);
      pass(to_server_.second, to_client_.second);
      return answer.poll(reactor_.wait_scope);
    });
    waitFor(reactor_, kj::mv(answer));
  }

  Reactor reactor_;
  EchoHost host_;
  std::pair<Socket, Socket> to_server_;
  std::pair<Socket, Socket> to_client_;
  std::unique_ptr<EchoConnection> client_;
};

TEST_F(TurnedOnTheWay, TheServerNamesWhoseMessageItWasAndTheCallFailsAsBroken) {
  ping();
  const uint64_t before = damagedMessages();
  ::testing::internal::CaptureStderr();
  auto call = client_->echo.pingRequest().send().ignoreResult().eagerlyEvaluate(nullptr);
  runUntil(reactor_, [&] { return pass(to_client_.second, to_server_.second, 40) > 0; });
  runUntil(reactor_, [&] { return host_.openCount() == 0; });
  runUntil(reactor_, [&] { return pass(to_server_.second, to_client_.second) > 0; });
  to_client_.second.close();
  const kj::Exception failure = failureOf(reactor_, kj::mv(call));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(damagedMessages(), before + 1);
  EXPECT_THAT(log, HasSubstr("event=message_damaged peer=\"worker/1\" reason=\"a message of "));
  EXPECT_EQ(failure.getType(), kj::Exception::Type::DISCONNECTED);
  EXPECT_THAT(failure.getDescription().cStr(), HasSubstr("damaged on the way"))
      << "the sender is told";
}

TEST_F(TurnedOnTheWay, TheClientNamesWhoseAnswerItWas) {
  ping();
  const uint64_t before = damagedMessages();
  ::testing::internal::CaptureStderr();
  auto call = client_->echo.pingRequest().send().ignoreResult().eagerlyEvaluate(nullptr);
  runUntil(reactor_, [&] {
    pass(to_client_.second, to_server_.second);
    return pass(to_server_.second, to_client_.second, 40) > 0;
  });
  const kj::Exception failure = failureOf(reactor_, kj::mv(call));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(damagedMessages(), before + 1);
  EXPECT_THAT(log, HasSubstr("event=message_damaged peer=\"server\" reason=\"a message of "));
  EXPECT_EQ(failure.getType(), kj::Exception::Type::DISCONNECTED);
  EXPECT_THAT(failure.getDescription().cStr(), HasSubstr("damaged on the way"));
}

// The last suite: it uses up the log lines of its second.
TEST(DamageFlood, AFloodIsCountedWholeAndLoggedInPart) {
  const uint64_t before = damagedMessages();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) noteDamage("ps/0", "other bytes");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(damagedMessages(), before + 1000);
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 500);
}

}  // namespace
}  // namespace dtf::net::testing
