// A connection to a peer that breaks it, is away, rejects or freezes, on the test's clock.

#include "common/wire/healing_connection.h"

#include <gtest/gtest.h>
#include <kj/async-io.h>

#include "common/net/rpc_connection.h"
#include "common/wire/ps.capnp.h"
#include "tests/support/still_loop.h"

namespace dtf::wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The peer's reactions to a hello, and to a call (`status`).
struct BreakingPeer {
  bool takes_connections = true;
  bool answers_hello = true;
  std::optional<Error> refused_hello;
  bool answers = true;
  std::optional<Error> refusal;
  int asked = 0;
  std::function<void()> on_asked = [] {};
};

class BreakingGate final : public schema::PsGate::Server {
 public:
  explicit BreakingGate(BreakingPeer& peer) : peer_(peer) {}

 private:
  kj::Promise<void> hello(HelloContext) override {
    if (peer_.refused_hello) net::throwAsKj(Error(*peer_.refused_hello));
    if (!peer_.answers_hello) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }
  kj::Promise<void> status(StatusContext) override {
    ++peer_.asked;
    peer_.on_asked();
    if (peer_.refusal) net::throwAsKj(Error(*peer_.refusal));
    if (!peer_.answers) return kj::NEVER_DONE;
    return kj::READY_NOW;
  }
  BreakingPeer& peer_;
};

class HealingConnectionTest : public ::testing::Test {
 protected:
  static constexpr Duration kRejoin = seconds(20);

  HealingConnectionTest() {
    loop_.on_connect = [this](uint16_t) -> kj::Promise<kj::Own<net::MessageStream>> {
      ++connections_;
      auto pipe = kj::newTwoWayPipe();
      if (peer_.takes_connections)
        servers_.push_back(kj::heap<net::RpcConnection>(
            net::wrapStream(kj::mv(pipe.ends[0])),
            [this](net::RpcConnection&) { return kj::heap<BreakingGate>(peer_); },
            net::RpcOptions{}));
      return net::wrapStream(kj::mv(pipe.ends[1]));
    };
    steps_.say_hello = [this](net::RpcConnection& connection) {
      gate_ = connection.bootstrap().castAs<schema::PsGate>();
      return gate_->helloRequest().send().ignoreResult();
    };
    steps_.on_open = [this] { events_ += "open "; };
    steps_.on_broken = [this](const Error&) { events_ += "broken "; };
    steps_.on_lost = [this](const Error& error) {
      events_ += "lost ";
      lost_ = error.message();
    };
  }
  ~HealingConnectionTest() noexcept override {}

  // Returns a connection that is open.
  HealingConnection& opened(Duration rejoin = kRejoin) {
    connection_ = std::make_unique<HealingConnection>(
        loop_, Opening{.peer = "ps/1 (here:7)", .address = {"here", 7}, .patience = seconds(8)},
        rejoin, seconds(5), steps_);
    opening_ = connection_->open("saying hello").eagerlyEvaluate(nullptr);
    loop_.settle();
    EXPECT_TRUE(connection_->isOpen());
    return *connection_;
  }

  // A call that is repeated until it gets a reply: `state` is "waits", "answered", or the error.
  struct Question {
    std::string state = "waits";
    kj::Promise<void> promise = nullptr;
  };
  std::unique_ptr<Question> ask() {
    auto question = std::make_unique<Question>();
    question->promise =
        connection_
            ->untilAnswered<void>("asking",
                                  [this] { return gate_->statusRequest().send().ignoreResult(); })
            .then([question = question.get()] { question->state = "answered"; })
            .eagerlyEvaluate([question = question.get()](kj::Exception&& exception) {
              question->state = net::toError(exception).message();
            });
    loop_.settle();
    return question;
  }
  // Ends the peer's process.
  void killPeer() {
    servers_.clear();
    loop_.settle();
  }

  testing::StillLoop loop_;
  BreakingPeer peer_;
  std::vector<kj::Own<net::RpcConnection>> servers_;
  int connections_ = 0;
  std::string events_;
  std::string lost_;
  HealingConnection::Steps steps_;
  std::optional<schema::PsGate::Client> gate_;  // of the newest connection
  std::unique_ptr<HealingConnection> connection_;
  kj::Promise<void> opening_ = nullptr;
};

TEST_F(HealingConnectionTest, WhatWasNotAnsweredIsAskedAgainOnTheNextConnection) {
  opened();
  peer_.answers = false;
  const auto question = ask();
  EXPECT_EQ(question->state, "waits");
  peer_.answers = true;
  killPeer();
  loop_.live(seconds(1));
  EXPECT_EQ(question->state, "answered");
  EXPECT_EQ(peer_.asked, 2);
  EXPECT_EQ(connections_, 2);
  EXPECT_EQ(events_, "open broken open ");
  EXPECT_FALSE(connection_->brokenSince().has_value());
}

TEST_F(HealingConnectionTest, AnAnswerIsFinalAndSoIsAnError) {
  opened();
  peer_.refusal = Error(ErrorCode::kUnavailable, "fenced");
  EXPECT_EQ(ask()->state, "fenced");
  EXPECT_EQ(peer_.asked, 1);
  EXPECT_EQ(connections_, 1);
  EXPECT_EQ(events_, "open ");
}

// A channel beside the connection may have found out first, and throw at once.
TEST_F(HealingConnectionTest, ACallThatThrowsABreakIsRepeatedAndOneThatThrowsAnErrorIsNot) {
  opened();
  int begun = 0;
  auto promise = connection_->untilAnswered<void>("asking", [&]() -> kj::Promise<void> {
    if (++begun == 1)
      kj::throwFatalException(net::toKj(net::asio::error::not_connected, "gone while idle"));
    return gate_->statusRequest().send().ignoreResult();
  });
  bool is_answered = false;
  promise = promise.then([&] { is_answered = true; }).eagerlyEvaluate(nullptr);
  loop_.live(seconds(1));
  EXPECT_TRUE(is_answered);
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(connections_, 2);
  std::string error;
  promise = connection_
                ->untilAnswered<void>("asking",
                                      []() -> kj::Promise<void> {
                                        throw Error(ErrorCode::kBadData, "no such memory");
                                      })
                .eagerlyEvaluate([&](kj::Exception&& exception) {
                  EXPECT_EQ(net::toError(exception).code(), ErrorCode::kBadData);
                  error = net::toError(exception).message();
                });
  loop_.settle();
  EXPECT_EQ(error, "no such memory");
  EXPECT_EQ(connections_, 2);
}

TEST_F(HealingConnectionTest, WhatIsAskedWhileThePeerIsAwayWaits) {
  HealingConnection& connection = opened();
  peer_.takes_connections = false;
  killPeer();
  const auto first = ask();
  const auto second = ask();
  loop_.live(seconds(5));
  EXPECT_EQ(first->state, "waits");
  EXPECT_EQ(second->state, "waits");
  EXPECT_FALSE(connection.isOpen());
  ASSERT_TRUE(connection.brokenSince().has_value());
  EXPECT_GE(loop_.clock().now() - *connection.brokenSince(), seconds(4));
  peer_.takes_connections = true;
  loop_.live(seconds(1));
  EXPECT_EQ(first->state, "answered");
  EXPECT_EQ(second->state, "answered");
}

TEST_F(HealingConnectionTest, APeerThatStaysAwayIsLostWithTheBreakAndTheLastAttempt) {
  opened();
  peer_.takes_connections = false;
  killPeer();
  const auto question = ask();
  loop_.live(kRejoin + seconds(2));
  EXPECT_EQ(events_, "open broken lost ");
  EXPECT_NE(lost_.find("lost ps/1 (here:7) while asking: "), std::string::npos) << lost_;
  EXPECT_NE(lost_.find("; "), std::string::npos) << lost_;
  EXPECT_EQ(question->state, lost_);
  EXPECT_EQ(ask()->state, lost_) << "later ones fail at once";
  const int connections = connections_;
  peer_.takes_connections = true;
  loop_.live(seconds(5));
  EXPECT_EQ(connections_, connections) << "it is over";
}

TEST_F(HealingConnectionTest, WithoutTimeToRejoinABreakIsFinal) {
  opened(Duration{0});
  killPeer();
  EXPECT_NE(ask()->state.find("lost ps/1 (here:7) while asking: "), std::string::npos);
  loop_.live(seconds(5));
  EXPECT_EQ(connections_, 1);
}

TEST_F(HealingConnectionTest, ARefusalAfterABreakIsTheReason) {
  opened();
  peer_.refused_hello = Error(ErrorCode::kUnavailable, "fenced: a newer process is here");
  killPeer();
  const auto question = ask();
  loop_.live(seconds(1));
  EXPECT_EQ(question->state, "fenced: a newer process is here");
  EXPECT_EQ(events_, "open broken lost ");
}

// A ps of another job at the address of one that died.
TEST_F(HealingConnectionTest, AnotherThatAnswersAtThePeersAddressIsWaitedOut) {
  opened();
  peer_.refused_hello = Error(ErrorCode::kBadConfig, "two jobs share an address");
  killPeer();
  const auto question = ask();
  loop_.live(kRejoin / 2);
  EXPECT_EQ(events_, "open broken ");
  peer_.refused_hello.reset();
  loop_.live(seconds(1));
  EXPECT_EQ(question->state, "answered");
  EXPECT_EQ(events_, "open broken open ");
}

TEST_F(HealingConnectionTest, AnotherThatStaysAtThePeersAddressIsTheReason) {
  opened();
  peer_.refused_hello = Error(ErrorCode::kBadConfig, "two jobs share an address");
  killPeer();
  const auto question = ask();
  loop_.live(kRejoin + seconds(2));
  EXPECT_EQ(events_, "open broken lost ");
  EXPECT_NE(question->state.find("two jobs share an address"), std::string::npos)
      << question->state;
}

// An accepted connection doesn't prove that the peer lives: a launcher may hold its socket.
TEST_F(HealingConnectionTest, APeerThatAnswersNoHelloIsAway) {
  HealingConnection& connection = opened();
  peer_.answers_hello = false;
  killPeer();
  const auto question = ask();
  loop_.live(seconds(3));
  EXPECT_FALSE(connection.isOpen());
  EXPECT_EQ(events_, "open broken ");
  peer_.answers_hello = true;
  killPeer();  // breaks the calls without a reply
  loop_.live(seconds(3));
  EXPECT_EQ(question->state, "answered");
}

TEST_F(HealingConnectionTest, NothingIsAskedAgainBeforeWhatComesFirst) {
  auto first = kj::newPromiseAndFulfiller<void>();
  steps_.after_reopening = [&] { return kj::mv(first.promise); };
  opened();
  peer_.answers = false;
  const auto question = ask();
  killPeer();
  peer_.answers = true;
  loop_.live(seconds(1));
  EXPECT_EQ(connections_, 2);
  EXPECT_EQ(peer_.asked, 1) << "the model is declared first";
  first.fulfiller->fulfill();
  loop_.live(milliseconds(50));
  EXPECT_EQ(question->state, "answered");
}

TEST_F(HealingConnectionTest, AFrozenPeerCanBeGivenUp) {
  HealingConnection& connection = opened();
  peer_.answers = false;
  const auto question = ask();
  peer_.answers = true;
  connection.giveUp(Error(ErrorCode::kUnavailable, "it answers no heartbeat"));
  loop_.live(seconds(1));
  EXPECT_EQ(question->state, "answered");
  EXPECT_EQ(events_, "open broken open ");
}

TEST_F(HealingConnectionTest, ABreakThatIsTheEndMakesNoOther) {
  HealingConnection& connection = opened();
  connection.expectClose();
  killPeer();
  EXPECT_NE(ask()->state.find("lost ps/1"), std::string::npos);
  loop_.live(seconds(2));
  EXPECT_EQ(connections_, 1);
  EXPECT_EQ(events_, "open ") << "nobody is told of a loss";
}

TEST_F(HealingConnectionTest, EndingItFailsThoseWhoWaitWithThatError) {
  HealingConnection& connection = opened();
  peer_.takes_connections = false;
  killPeer();
  const auto question = ask();
  connection.end(Error(ErrorCode::kBadConfig, "the job was ended by worker/1"));
  loop_.settle();
  EXPECT_EQ(question->state, "the job was ended by worker/1");
  EXPECT_EQ(ask()->state, "the job was ended by worker/1");
}

TEST_F(HealingConnectionTest, APeerThatBreaksEachConnectionDoesNotKeepTheLoopBusy) {
  opened();
  peer_.answers = false;
  peer_.on_asked = [this] {
    if (connections_ < 100) loop_.post([this] { servers_.clear(); });  // it would go on for ever
  };
  const auto question = ask();
  loop_.live(seconds(2));
  EXPECT_GE(connections_, 10);
  EXPECT_LE(connections_, 25) << "ten a second";
  EXPECT_EQ(question->state, "waits");
}

// A long attempt may move much data. Only an attempt that begins after the limit counts as one too
// many.
TEST_F(HealingConnectionTest, AnAttemptThatIsUnderWayWhenTheTimeIsUpMayBreakAndIsRepeatedOnce) {
  steps_.failing_max = seconds(5);
  opened();
  peer_.answers = false;
  const auto question = ask();
  killPeer();
  loop_.live(seconds(10));  // at work on the second attempt
  EXPECT_EQ(peer_.asked, 2);
  killPeer();
  loop_.live(seconds(1));
  EXPECT_EQ(peer_.asked, 3);
  EXPECT_EQ(question->state, "waits");
  killPeer();
  loop_.live(seconds(1));
  EXPECT_NE(question->state.find("lost ps/1 (here:7) while asking: "), std::string::npos);
}

}  // namespace
}  // namespace dtf::wire
