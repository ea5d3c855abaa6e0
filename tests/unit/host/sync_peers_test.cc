#include "common/host/sync_peers.h"

#include <gtest/gtest.h>

#include "tests/unit/host/ps_world.h"

namespace dtf::host {
namespace {

using std::chrono::seconds;

// Three workers, two of which make a step, on two ps; the link between the ps breaks at will.
class SyncPeersTest : public ::testing::Test {
 protected:
  SyncPeersTest() {
    world_.loop.on_connect = [this](uint16_t port) -> kj::Promise<kj::Own<net::MessageStream>> {
      DTF_CHECK(port == 1);  // ps/0
      ++connections_;
      if (slow_) {
        auto pair = kj::newPromiseAndFulfiller<void>();
        reached_ = kj::mv(pair.fulfiller);
        return pair.promise.then([this] { return net::wrapStream(world_.serve(0, &server_end_)); });
      }
      if (unreachable_)
        net::throwAsKj(Error(ErrorCode::kUnavailable, "cannot connect: connection refused"));
      if (breaking_) {
        auto pipe = kj::newTwoWayPipe();
        return net::wrapStream(kj::mv(pipe.ends[1]));
      }
      return net::wrapStream(world_.serve(0, &server_end_));
    };
    arena::ModelDeclaration model;
    model.layout =
        arena::makeLayout({{"a", Shape{16}, {{0, 0, 16}}}, {"b", Shape{16}, {{1, 0, 16}}}}, 2);
    model.optimizer.learning_rate = 1;
    model.replication = {cluster::ReplicationSpec::Mode::kSync, 2, 3};
    model.steps = 100;
    for (uint32_t ps = 0; ps < 2; ++ps) {
      for (uint32_t rank = 0; rank < 3; ++rank) world_.shard(ps).workers().join(rank, kOne);
      world_.shard(ps).workers().declare(0, kOne, model);
      world_.shard(ps).initialise(0, kOne, std::vector<float>(16));
    }
  }
  ~SyncPeersTest() noexcept override {}

  void push(uint32_t ps, uint32_t rank, uint64_t step) {
    auto values = std::make_shared<std::vector<float>>(16, -1.0f);
    world_.shard(ps).push({.rank = rank,
                           .incarnation = kOne,
                           .step = step,
                           .batch = 0,
                           .sequence = 0,
                           .gradient = *values,
                           .owner = values},
                          [this](const replication::PushAnswer& answer) {
                            if (const Error* error = std::get_if<Error>(&answer))
                              errors_.push_back(error->message());
                          });
    world_.loop.settle();
  }
  uint64_t step(uint32_t ps) { return world_.shard(ps).status().coordinator.global_step; }
  void cut() {
    server_end_->abortRead();
    server_end_->shutdownWrite();
    world_.loop.settle();
  }

  PsWorld world_{2, 3};
  kj::AsyncIoStream* server_end_ = nullptr;
  bool unreachable_ = false;
  bool breaking_ = false;  // accepts connections and cuts them off
  bool slow_ = false;      // a connection is there once reached_ is fulfilled
  kj::Own<kj::PromiseFulfiller<void>> reached_;
  int connections_ = 0;
  std::vector<std::string> errors_;
};

TEST_F(SyncPeersTest, ADecisionReachesTheOtherPs) {
  for (uint32_t ps = 0; ps < 2; ++ps)
    for (uint32_t rank = 1; rank < 3; ++rank) push(ps, rank, 0);
  EXPECT_EQ(step(0), 1u);
  EXPECT_EQ(step(1), 1u);
  EXPECT_EQ(connections_, 1);
}

TEST_F(SyncPeersTest, WhatIsNotAnsweredWhenTheLinkBreaksIsSaidAgain) {
  push(1, 1, 0);
  cut();
  push(1, 2, 0);
  push(0, 1, 0);
  push(0, 2, 0);
  world_.loop.live(seconds(1));
  EXPECT_EQ(connections_, 2);
  EXPECT_EQ(step(0), 1u);
  EXPECT_EQ(step(1), 1u) << "the decision is heard over the second connection";
  push(1, 0, 1);
  push(0, 0, 1);
  push(0, 1, 1);
  push(1, 1, 1);
  EXPECT_EQ(step(1), 2u);
  EXPECT_TRUE(errors_.empty()) << errors_[0];
}

class NoFollower final : public schema::SyncFollower::Server {
  kj::Promise<void> decided(DecidedContext) override { return kj::READY_NOW; }
};

TEST_F(SyncPeersTest, NoSetIsMadeOfGradientsThatWentWithAProcessOfAFollower) {
  for (uint32_t rank = 1; rank < 3; ++rank) push(1, rank, 0);
  auto successor = world_.client(0);
  auto hello = successor->bootstrap().castAs<schema::PsGate>().peerRequest();
  wire::encodeHello(wire::linkOptions(world_.jobSpec(), {JobKind::kPs, 1}, Incarnation{99}),
                    {JobKind::kPs, 0}, hello.initHello());
  hello.setFollower(kj::heap<NoFollower>());
  auto leader = hello.send();
  world_.loop.settle();
  for (uint32_t rank = 1; rank < 3; ++rank) push(0, rank, 0);
  EXPECT_EQ(step(0), 0u);
  for (uint32_t rank = 1; rank < 3; ++rank) {
    auto again = leader.getLeader().receivedRequest();
    again.setEpoch(replication::kFirstEpoch);
    again.setRank(rank);
    auto said = again.send().ignoreResult().eagerlyEvaluate(nullptr);
    world_.loop.settle();
  }
  EXPECT_EQ(step(0), 1u);
}

TEST_F(SyncPeersTest, ADecisionMadeWhileTheLinkIsDownIsHeardLater) {
  for (uint32_t rank = 1; rank < 3; ++rank) push(1, rank, 0);
  push(0, 1, 0);
  slow_ = true;
  cut();
  push(0, 2, 0);  // decides
  world_.loop.live(seconds(1));
  EXPECT_EQ(step(0), 1u);
  EXPECT_EQ(step(1), 0u) << "there is no way to say it";
  ASSERT_EQ(connections_, 2);
  reached_->fulfill();
  world_.loop.live(seconds(1));
  EXPECT_EQ(step(1), 1u);
  EXPECT_EQ(connections_, 2);
}

TEST_F(SyncPeersTest, AnIdleLinkThatBreaksIsNotMissed) {
  for (uint32_t ps = 0; ps < 2; ++ps)
    for (uint32_t rank = 1; rank < 3; ++rank) push(ps, rank, 0);
  ASSERT_EQ(step(1), 1u);
  unreachable_ = true;
  cut();
  world_.loop.live(seconds(5));
  EXPECT_EQ(connections_, 1) << "nothing is to be said";
  EXPECT_FALSE(world_.ended(1));
}

TEST_F(SyncPeersTest, AMachineThatStoodStillDoesNotCostTheLinkItsTime) {
  push(1, 1, 0);
  push(1, 2, 0);
  breaking_ = true;
  cut();
  world_.loop.pass(seconds(60));  // many leases
  EXPECT_FALSE(world_.ended(1)) << "this ps has been awake for two attempts, not for a lease";
  breaking_ = false;
  world_.loop.live(seconds(1));
  push(0, 1, 0);
  push(0, 2, 0);
  EXPECT_EQ(step(1), 1u);
  EXPECT_TRUE(errors_.empty()) << errors_[0];
}

constexpr Incarnation attempt(uint32_t number) {
  return Incarnation::of(number, 1, 7);
}

// ps/0's reply to a process of ps/1, and the capability that it reports through.
struct Followed {
  std::string refusal;  // to the hello
  std::optional<schema::SyncLeader::Client> leader;
};
Followed follow(PsWorld& world, net::RpcConnection& connection, Incarnation incarnation) {
  class Deaf final : public schema::SyncFollower::Server {};
  auto request = connection.bootstrap().castAs<schema::PsGate>().peerRequest();
  wire::encodeHello(wire::linkOptions(world.jobSpec(), {JobKind::kPs, 1}, incarnation),
                    {JobKind::kPs, 0}, request.initHello());
  request.setFollower(kj::heap<Deaf>());
  auto promise = request.send();
  Followed followed;
  followed.leader = promise.getLeader();
  followed.refusal = world.refusal(promise.ignoreResult());
  return followed;
}

TEST_F(SyncPeersTest, AnEarlierProcessOfAFollowerIsFenced) {
  const auto report = [this](Followed& from) {
    auto request = from.leader->receivedRequest();
    request.setEpoch(replication::kFirstEpoch);
    return world_.refusal(request.send().ignoreResult());
  };
  auto first = world_.client(0), second = world_.client(0), late = world_.client(0);
  Followed old = follow(world_, *first, attempt(1));
  EXPECT_EQ(report(old), "");
  Followed successor = follow(world_, *second, attempt(2));
  EXPECT_EQ(report(successor), "");
  EXPECT_EQ(report(old), "fenced: ps/1 was replaced by a newer process; end this one");
  EXPECT_EQ(follow(world_, *late, attempt(1)).refusal,
            "fenced: ps/1 was replaced by a newer process; end this one");
  EXPECT_EQ(report(successor), "") << "it is ps/1 still";
}

// A gate of ps/0 with the number of its process; it accepts every report.
class NumberedGate final : public schema::PsGate::Server {
 public:
  NumberedGate(Incarnation incarnation, int& reports)
      : incarnation_(incarnation), reports_(reports) {}
  kj::Promise<void> peer(PeerContext context) override {
    class Taker final : public schema::SyncLeader::Server {
     public:
      explicit Taker(int& reports) : reports_(reports) {}
      kj::Promise<void> received(ReceivedContext) override {
        ++reports_;
        return kj::READY_NOW;
      }

     private:
      int& reports_;
    };
    context.getResults().setLeader(kj::heap<Taker>(reports_));
    context.getResults().setIncarnation(incarnation_.value);
    return kj::READY_NOW;
  }

 private:
  const Incarnation incarnation_;
  int& reports_;
};

TEST_F(SyncPeersTest, AnEarlierProcessOfTheLeaderIsNotListenedTo) {
  std::vector<kj::Own<net::RpcConnection>> served;
  std::vector<int> reports(3);
  const std::vector<Incarnation> answering{attempt(2), attempt(1), attempt(3)};
  world_.loop.on_connect = [&](uint16_t) -> kj::Promise<kj::Own<net::MessageStream>> {
    const size_t i = std::min<size_t>(connections_++, 2);
    auto pipe = kj::newTwoWayPipe();
    server_end_ = pipe.ends[0].get();
    served.push_back(kj::heap<net::RpcConnection>(
        net::wrapStream(kj::mv(pipe.ends[0])),
        [&, i](net::RpcConnection&) -> capnp::Capability::Client {
          return kj::heap<NumberedGate>(answering[i], reports[i]);
        },
        net::RpcOptions{}));
    return net::wrapStream(kj::mv(pipe.ends[1]));
  };
  push(1, 1, 0);
  EXPECT_EQ(reports[0], 1);
  cut();  // its decision is still due
  world_.loop.live(seconds(3));
  EXPECT_GE(connections_, 3);
  push(1, 2, 0);
  EXPECT_EQ(reports[1], 0) << "a process that was replaced is told nothing";
  EXPECT_GT(reports[2], 0);
  EXPECT_FALSE(world_.ended(1));
}

TEST_F(SyncPeersTest, ALinkThatCanNotBeMadeAgainEndsThePsByName) {
  push(1, 1, 0);
  push(1, 2, 0);
  unreachable_ = true;
  cut();
  world_.loop.live(seconds(5));
  ASSERT_TRUE(world_.ended(1));
  try {
    world_.server(1).result();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(error.message().find("ps/1 lost ps/0 (still-ps:1)"), std::string::npos)
        << error.message();
  }
  ASSERT_EQ(errors_.size(), 2u) << "who waits is told, too";
  EXPECT_NE(errors_[0].find("ps/1 lost ps/0"), std::string::npos) << errors_[0];
}

}  // namespace
}  // namespace dtf::host
