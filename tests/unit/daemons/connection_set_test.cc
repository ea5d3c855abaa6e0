#include "daemons/connection_set.h"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include <string>
#include <vector>

#include "common/net/connector.h"
#include "common/net/message_stream.h"
#include "common/net/timer.h"
#include "tests/unit/net/echo.capnp.h"

namespace dtf::daemons {
namespace {

// A loop whose time stands still until it is told.
class StillLoop final : public net::Loop {
 public:
  ~StillLoop() noexcept override {}  // net::Loop's may not throw, kj's may

  const Clock& clock() const override { return clock_; }
  kj::Timer& timer() override { return timer_; }
  void post(std::function<void()> fn) override { posted_.push_back(std::move(fn)); }
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string, uint16_t, net::ConnectOptions,
                                                   const net::Limits&,
                                                   std::shared_ptr<net::BufferPool>) override {
    KJ_FAIL_REQUIRE("nobody connects here");
  }

  // Timers come before what lies in the streams, as in a loop that was late.
  void pass(Duration time) {
    timer_.advanceTo(timer_.now() + net::toKj(time));
    settle();
  }
  void settle() {
    wait_scope_.poll();
    for (const auto& fn : std::exchange(posted_, {})) fn();
    wait_scope_.poll();
  }

 private:
  kj::EventLoop events_;
  kj::WaitScope wait_scope_{events_};
  kj::TimerImpl timer_{kj::origin<kj::TimePoint>()};
  ManualClock clock_;
  std::vector<std::function<void()>> posted_;
};

// Its ping is the hello.
class Greeted final : public net::testing::Echo::Server {
 public:
  explicit Greeted(ConnectionRef connection) : connection_(std::move(connection)) {}
  kj::Promise<void> ping(PingContext) override {
    connection_->greeted = true;
    return kj::READY_NOW;
  }

 private:
  const ConnectionRef connection_;
};

class ConnectionSetTest : public ::testing::Test {
 protected:
  ~ConnectionSetTest() noexcept override {}  // gtest's may not throw, kj's may

  StillLoop loop_;
  int closed_ = 0;
  ConnectionSet connections_{loop_, [this](const void*) { ++closed_; }};

  void serve(kj::Own<kj::AsyncIoStream> stream) {
    connections_.serve(net::wrapStream(kj::mv(stream)), "10.0.0.1:5555",
                       [](const ConnectionRef& ref) { return kj::heap<Greeted>(ref); });
  }
};

TEST_F(ConnectionSetTest, AConnectionWithoutAHelloIsClosedAfterDeadlineAndGrace) {
  auto pipe = kj::newTwoWayPipe();
  serve(kj::mv(pipe.ends[0]));
  loop_.pass(kHelloDeadline);
  EXPECT_EQ(connections_.size(), 1u) << "its hello may lie unread";
  loop_.pass(kHelloGrace);
  EXPECT_EQ(connections_.size(), 0u);
  EXPECT_EQ(closed_, 1);
}

TEST_F(ConnectionSetTest, AHelloThatLayUnreadWhileTheLoopWasLateIsHeard) {
  auto pipe = kj::newTwoWayPipe();
  serve(kj::mv(pipe.ends[0]));
  net::RpcConnection client(net::wrapStream(kj::mv(pipe.ends[1])), {});
  const auto hello = client.bootstrap().castAs<net::testing::Echo>().pingRequest().send();
  loop_.pass(kHelloDeadline * 10);
  loop_.pass(kHelloGrace);
  EXPECT_EQ(connections_.size(), 1u);
  EXPECT_EQ(closed_, 0);
}

TEST_F(ConnectionSetTest, APeerThatLeavesIsForgotten) {
  auto pipe = kj::newTwoWayPipe();
  serve(kj::mv(pipe.ends[0]));
  pipe.ends[1] = nullptr;
  loop_.settle();
  EXPECT_EQ(connections_.size(), 0u);
  EXPECT_EQ(closed_, 1);
}

}  // namespace
}  // namespace dtf::daemons
