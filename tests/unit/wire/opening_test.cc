// A peer that breaks, rejects or stays silent, on pipes and the test's clock.

#include "common/wire/opening.h"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include "common/net/error_bridge.h"
#include "common/wire/ps.capnp.h"
#include "tests/support/still_loop.h"

namespace dtf::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Peer { kBreaks, kRefuses, kSilent, kAnswers };

class Gate final : public schema::PsGate::Server {
 public:
  explicit Gate(Peer peer) : peer_(peer) {}

 private:
  kj::Promise<void> hello(HelloContext) override {
    if (peer_ == Peer::kAnswers) return kj::READY_NOW;
    if (peer_ == Peer::kSilent) return kj::NEVER_DONE;
    net::throwAsKj(Error(ErrorCode::kUnavailable, "this ps is about to end"));
  }
  const Peer peer_;
};

class OpeningTest : public ::testing::Test {
 protected:
  OpeningTest() {
    loop_.on_connect = [this](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
      EXPECT_EQ(port, 7);
      ++connections_;
      auto pipe = kj::newTwoWayPipe();
      if (peer_ != Peer::kBreaks)
        servers_.push_back(kj::heap<net::RpcConnection>(
            net::wrapStream(kj::mv(pipe.ends[0])),
            [this](net::RpcConnection&) { return kj::heap<Gate>(peer_); }, net::RpcOptions{}));
      return net::wrapStream(kj::mv(pipe.ends[1]));
    };
  }
  ~OpeningTest() noexcept override {}

  void open() {
    opening_ = openConnection(
                   loop_, {.peer = "ps/1 (here:7)", .address = {"here", 7}, .patience = seconds(8)},
                   [](net::RpcConnection& connection) {
                     return connection.bootstrap()
                         .castAs<schema::PsGate>()
                         .helloRequest()
                         .send()
                         .ignoreResult();
                   })
                   .then([this](auto connection) { connection_ = std::move(connection); })
                   .eagerlyEvaluate(
                       [this](kj::Exception&& exception) { error_ = net::toError(exception); });
    loop_.settle();
  }

  testing::StillLoop loop_;
  Peer peer_ = Peer::kAnswers;
  std::vector<kj::Own<net::RpcConnection>> servers_;
  int connections_ = 0;
  std::unique_ptr<net::RpcConnection> connection_;
  std::optional<Error> error_;
  kj::Promise<void> opening_ = nullptr;
};

TEST_F(OpeningTest, AnAnsweredHelloIsAConnection) {
  open();
  ASSERT_NE(connection_, nullptr);
  EXPECT_EQ(connection_->peer(), "ps/1 (here:7)");
  EXPECT_EQ(connections_, 1);
}

TEST_F(OpeningTest, ABrokenConnectionIsMadeAnew) {
  peer_ = Peer::kBreaks;
  open();
  loop_.live(seconds(2));
  EXPECT_GT(connections_, 10);
  EXPECT_FALSE(error_) << error_->message();
  peer_ = Peer::kAnswers;
  loop_.live(milliseconds(200));
  EXPECT_NE(connection_, nullptr);
}

TEST_F(OpeningTest, APeerThatBreaksForTooLongIsNamedWithTheLastFailure) {
  peer_ = Peer::kBreaks;
  open();
  loop_.live(seconds(9));
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(error_->message().starts_with(
      "waited 8 s for ps/1 (here:7) to answer the hello, last error: "))
      << error_->message();
}

TEST_F(OpeningTest, WhatThePeerAnswersIsFinal) {
  peer_ = Peer::kRefuses;
  open();
  loop_.live(seconds(1));
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->message(), "this ps is about to end");
  EXPECT_EQ(connections_, 1);
}

TEST_F(OpeningTest, ASilentPeerIsWaitedForAsLongAsThisLoopIsAwake) {
  peer_ = Peer::kSilent;
  open();
  loop_.pass(seconds(20));  // the machine stood still
  EXPECT_FALSE(error_) << error_->message();
  loop_.live(seconds(9));
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->message(), "waited 8 s for ps/1 (here:7) to answer the hello");
}

TEST_F(OpeningTest, DroppedItLeavesNoTimer) {
  peer_ = Peer::kBreaks;
  open();
  EXPECT_FALSE(loop_.idle());
  opening_ = nullptr;
  EXPECT_TRUE(loop_.idle());
}

}  // namespace
}  // namespace dtf::wire
