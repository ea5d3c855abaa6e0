#include "common/wire/connection_set.h"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include "tests/support/still_loop.h"
#include "tests/unit/net/echo.capnp.h"

namespace dtf::wire {
namespace {

// ping() stands for the hello.
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

  dtf::testing::StillLoop loop_;
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

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_F(ConnectionSetTest, AFloodOfBadPeersCostsFiveLinesASecond) {
  std::vector<kj::TwoWayPipe> pipes;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) {
    pipes.push_back(kj::newTwoWayPipe());
    serve(kj::mv(pipes.back().ends[0]));
  }
  loop_.pass(kHelloDeadline);
  loop_.pass(kHelloGrace);
  EXPECT_EQ(connections_.size(), 0u);
  loop_.pass(std::chrono::seconds(1));
  auto last = kj::newTwoWayPipe();
  serve(kj::mv(last.ends[0]));
  loop_.pass(kHelloDeadline);
  loop_.pass(kHelloGrace);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(log, "event=connection_refused"), 6u) << log;
  EXPECT_EQ(count(log, "suppressed=995"), 1u) << log;
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
}  // namespace dtf::wire
