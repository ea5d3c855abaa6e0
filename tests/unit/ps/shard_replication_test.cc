// A shard with a replica: what its workers see when its process is lost and another takes its place.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/ps/replicated_shard.h"

namespace dtf::ps {
namespace {

using Kind = cluster::OptimizerSpec::Kind;

TEST(ShardReplication, APushIsAnsweredWhenTheReplicaHasIt) {
  Replicated world(2, 0, 10);
  world.driver().pull(0);
  const auto pushed = world.driver().push(0, 0);
  EXPECT_TRUE(pushed->waits());
  EXPECT_EQ(world.driver().pull(1)->value(), 0);  // nor does anybody see it
  world.keeper.deliverAll();
  EXPECT_EQ(pushed->state().outcome, Outcome::kApplied);
  EXPECT_EQ(pushed->value(), 1);
}

// What the chief is told that asks when the replica is whole.
std::shared_ptr<std::string> awaitReplica(ShardDriver& driver, uint64_t epoch = kFirstEpoch) {
  auto text = std::make_shared<std::string>("waits");
  driver.shard.awaitReplica(kReplicatedChief, epoch, [text](const WaitAnswer& answer) {
    const Error* error = std::get_if<Error>(&answer);
    *text = error ? error->message() : "whole";
  });
  return text;
}

TEST(ShardReplication, TheChiefIsToldWhenTheReplicaIsWhole) {
  Replicated world(2, 0, 10);
  EXPECT_EQ(*awaitReplica(world.driver()), "whole");
  world.driver().shard.onReplicaBackup();  // another process
  const auto first = awaitReplica(world.driver());
  EXPECT_EQ(*first, "waits");
  const auto second = awaitReplica(world.driver());
  EXPECT_NE(first->find("gave way"), std::string::npos) << *first;
  world.keeper.deliverAll();
  EXPECT_EQ(*second, "whole");
  EXPECT_NE(awaitReplica(world.driver(), kFirstEpoch + 1)->find("is on epoch"), std::string::npos);
}

TEST(ShardReplication, WhoWaitsForTheReplicaOfAnEpochThatIsLeftIsTold) {
  Replicated world(2, 0, 10);
  world.driver().shard.onReplicaBackup();
  const auto asked = awaitReplica(world.driver());
  const std::vector<float> values(world.driver().elements);
  ASSERT_TRUE(
      world.driver().shard.initialise(0, kReplicatedChief, values, nextEpoch(kFirstEpoch, 1)));
  EXPECT_NE(asked->find("left the epoch"), std::string::npos) << *asked;
  const auto later = awaitReplica(world.driver(), nextEpoch(kFirstEpoch, 1));
  world.driver().shard.failAll(Error(ErrorCode::kUnavailable, "the end"));
  EXPECT_EQ(*later, "the end");
}

TEST(ShardReplication, AsyncNothingThatWasAnsweredIsLostOrAppliedTwice) {
  Replicated world(2, 0, 4);
  world.driver().pull(0);
  world.driver().pull(1);
  const auto answered = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_EQ(answered->state().global_step, 1u);
  const auto unanswered = world.driver().push(1, 0, 2);
  EXPECT_FALSE(world.loseAndRefill());
  EXPECT_TRUE(unanswered->waits());
  EXPECT_EQ(world.driver().shard.word().step, 1u);
  EXPECT_EQ(world.driver().shard.word().epoch, kFirstEpoch);
  // The one that was answered, again; and the other, as its worker says it again.
  const auto again = world.driver().push(0, 0);
  EXPECT_EQ(again->state().outcome, Outcome::kApplied);
  EXPECT_EQ(again->state().next_step, 1u);
  const auto first = world.driver().push(1, 0, 2);
  world.keeper.deliverAll();
  ASSERT_FALSE(first->waits());
  EXPECT_EQ(first->state().outcome, Outcome::kApplied);
  EXPECT_EQ(first->value(), 3);
  EXPECT_EQ(world.driver().shard.status().coordinator.global_step, 2u);
}

TEST(ShardReplication, AsyncWhatTheReplicaReceivedIsAppliedOnceThoughItsAnswerWasLost) {
  Replicated world(2, 0, 3);
  world.driver().pull(0);
  world.keeper.heard = [](uint64_t) {};
  EXPECT_TRUE(world.driver().push(0, 0)->waits());
  world.keeper.deliverAll();
  EXPECT_FALSE(world.loseAndRefill());
  const auto again = world.driver().push(0, 0);
  EXPECT_EQ(again->state().outcome, Outcome::kApplied);
  EXPECT_EQ(again->value(), 1);
  EXPECT_EQ(again->state().global_step, 1u);
}

TEST(ShardReplication, AsyncNoStepIsGrantedTwice) {
  Replicated world(2, 0, 2);
  world.driver().pull(0);  // both steps are granted
  world.driver().pull(1);
  EXPECT_FALSE(world.loseAndRefill());
  // A new process of worker/0 asks: its step is its own again, worker/1 has the other one.
  EXPECT_FALSE(world.driver().pull(0)->waits());
  const auto first = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_TRUE(first->waits());  // there is no third step: it may come back from worker/1
  const auto second = world.driver().push(1, 0);
  world.keeper.deliverAll();
  EXPECT_TRUE(second->state().done);
  EXPECT_TRUE(first->state().done);
  EXPECT_EQ(second->state().global_step, 2u);
}

// Of two steps that are left the ps that was lost may have granted both. But all three ask: none has one.
TEST(ShardReplication, AsyncWhereAllAskNobodyHoldsAGrantOfBefore) {
  Replicated world(3, 0, 5);
  for (uint32_t rank = 0; rank < 3; ++rank) world.driver().pull(rank);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    world.driver().push(rank, 0);
    world.keeper.deliverAll();
  }
  EXPECT_FALSE(world.loseAndRefill());
  std::vector<std::shared_ptr<Recorded>> asks;
  for (uint32_t rank = 0; rank < 3; ++rank) asks.push_back(world.driver().push(rank, 0));
  EXPECT_EQ(std::ranges::count_if(asks, [](const auto& ask) { return ask->waits(); }), 1);
}

TEST(ShardReplication, AsyncAGrantWhoseWorkerIsGonePassesOn) {
  Replicated world(2, 0, 2);
  world.driver().pull(0);
  world.driver().pull(1);
  EXPECT_FALSE(world.loseAndRefill());
  const auto first = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_TRUE(first->waits());
  world.driver().shard.markLost(1);
  EXPECT_FALSE(first->waits());
  EXPECT_FALSE(first->state().done);
}

TEST(ShardReplication, AsyncAGrantThatIsShownLateCountsStill) {
  Replicated world(2, 0, 10);
  world.driver().pull(0);
  EXPECT_FALSE(world.loseAndRefill());
  world.driver().clock.advance(std::chrono::seconds(61));  // it evaluated meanwhile
  world.driver().shard.heartbeat(0, kReplicatedChief);
  world.driver().shard.tick();
  const auto late = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_EQ(late->state().outcome, Outcome::kApplied);
}

TEST(ShardReplication, SyncAStepThatWasAnsweredIsAnsweredAgain) {
  Replicated world(2, 2, 10);
  world.driver().push(0, 0, 1);
  world.driver().push(1, 0, 3);
  world.keeper.deliverAll();
  world.driver().push(0, 1, 5);  // of the next step, and lost
  EXPECT_FALSE(world.loseAndRefill());
  const auto again = world.driver().push(1, 0, 3);
  EXPECT_EQ(again->state().outcome, Outcome::kApplied);
  EXPECT_EQ(again->state().next_step, 1u);
  EXPECT_EQ(again->value(), 2);
  // A worker of which another ps still waits for step 0 needs the parameters of then.
  EXPECT_EQ(world.driver().pull(0, 1, {.step = 0})->value(), 0);
  world.driver().push(0, 1, 5);
  const auto both = world.driver().push(1, 1, 7);
  world.keeper.deliverAll();
  EXPECT_EQ(both->value(), 8);
}

TEST(ShardReplication, SyncBatchesThatWereKeptForTheirStepAreComputedAgain) {
  Replicated world(1, 3, 10);
  EXPECT_EQ(world.driver().push(0, 0, 1, 0)->state().outcome, Outcome::kQueued);
  EXPECT_FALSE(world.loseAndRefill());
  const auto next = world.driver().push(0, 0, 1, 1);
  EXPECT_EQ(next->state().outcome, Outcome::kWentBack);
  EXPECT_EQ(next->state().next_step, 0u);
  EXPECT_EQ(next->state().next_batch, 0u);
  EXPECT_EQ(next->state().epoch, kFirstEpoch);
}

TEST(ShardReplication, WhatIsKeptOfAnotherEpochIsNotTaken) {
  Replicated world(2, 2, 10);
  const std::optional<Error> error = world.loseAndRefill(nextEpoch(kFirstEpoch, 4));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(world.driver().shard.initialised());
}

TEST(ShardReplication, ALostReplicaIsAwaitedByName) {
  Replicated world(2, 0, 10);
  world.driver().pull(0);
  world.driver().push(0, 0);
  world.keeper.startAgain();
  world.driver().shard.onReplicaBackup();
  for (int i = 0; i < 3; ++i) {
    world.driver().clock.advance(std::chrono::seconds(2));
    world.driver().shard.tick();
    EXPECT_EQ(world.driver().shard.awaitedText(), "ps/0 to take the replica of ps/0");  // of one ps
    EXPECT_TRUE(world.driver().shard.awaitsReturn());
  }
}

TEST(ShardReplication, AnUpdateWhoseReplicaIsAwayWaitsForItByName) {
  Replicated world(2, 2, 10);
  ShardDriver& driver = world.driver();
  const auto first = driver.push(0, 0);
  const auto second = driver.push(1, 0);
  driver.clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(driver.shard.awaitedText(), "the update itself in step 0");
  EXPECT_FALSE(driver.shard.awaitsReturn());
  world.keeper.is_away = true;
  for (int i = 0; i < 20; ++i) {  // longer than a step may take
    driver.clock.advance(std::chrono::seconds(8));
    driver.shard.heartbeat(0, Incarnation{1});
    driver.shard.heartbeat(1, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_EQ(driver.shard.awaitedText(), "the replica on ps/0, which is lost");  // of one ps
  EXPECT_TRUE(driver.shard.awaitsReturn());
  EXPECT_TRUE(first->waits());
  world.keeper.is_away = false;
  world.keeper.deliverAll();
  EXPECT_EQ(first->state().outcome, Outcome::kApplied);
  EXPECT_EQ(second->state().outcome, Outcome::kApplied);
  EXPECT_EQ(driver.shard.awaitedText(), "");
  EXPECT_FALSE(driver.shard.awaitsReturn());
}

TEST(ShardReplication, AReplicaThatIsAwayKeepsNobodyWhoseUpdateItHas) {
  Replicated world(2, 2, 10);
  world.driver().push(0, 0);
  world.keeper.is_away = true;
  world.driver().clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(world.driver().shard.awaitedText(), "worker/1 in step 0");
  EXPECT_FALSE(world.driver().shard.awaitsReturn());
}

// ---- backup workers: ps/0 of two, whose replica the keeper has

TEST(ShardReplication, ADecisionIsAnnouncedWhenTheReplicaHasItAndToWhoeverMissedIt) {
  ReplicaKeeper keeper(2);
  ShardDriver driver(2, 1, 10, 0, 2, false, true, Kind::kGradientDescent, std::chrono::seconds(60),
                     &keeper);
  keeper.model = driver.model;
  keeper.heard = [&](uint64_t ticket) { driver.shard.onReplicaHeard(ticket); };
  driver.shard.onReplicaBackup();
  keeper.deliverAll();
  driver.push(1, 0);
  driver.shard.onReceived(1, stepName(0), 1);
  EXPECT_TRUE(driver.peers.decisions.empty());
  keeper.deliverAll();
  ASSERT_EQ(driver.peers.decisions.size(), 1u);
  EXPECT_EQ(driver.peers.decisions[0], std::pair(uint64_t{0}, std::vector<uint32_t>{1}));
  // Another process of ps/1 reports what its worker says again.
  driver.shard.onReceived(1, stepName(0), 1);
  EXPECT_EQ(driver.peers.decisions.size(), 2u);
}

TEST(ShardReplication, ADecisionWaitsForTheGradientsThatAProcessBeforeHeld) {
  ReplicaKeeper keeper(2);
  ShardDriver driver(2, 1, 10, 1, 2, false, true, Kind::kGradientDescent, std::chrono::seconds(60),
                     &keeper);
  keeper.heard = [&](uint64_t ticket) { driver.shard.onReplicaHeard(ticket); };
  keeper.model = driver.model;
  std::swap(keeper.model.layout.shards[0], keeper.model.layout.shards[1]);  // of the same size
  driver.shard.onReplicaBackup();
  keeper.deliverAll();
  driver.shard.onDecision(stepName(0), {1});
  const auto late = driver.push(1, 0);
  keeper.deliverAll();
  EXPECT_EQ(late->state().outcome, Outcome::kApplied);
  EXPECT_TRUE(driver.peers.reports.empty());  // ps/0 has decided
  // A new link to ps/0: it is told again what is held.
  driver.push(0, 1);
  driver.shard.onLeaderLinked();
  EXPECT_EQ(driver.peers.reports, (std::vector<std::string>{"1:0", "1:0"}));
}

// ps/1 of two, of three workers of which two make a step, filled from its replica. worker/2 was lost with
// the process before it.
class RefilledFollower {
 public:
  RefilledFollower()
      : driver(3, 2, 10, 1, 2, false, true, Kind::kGradientDescent, std::chrono::seconds(60),
               &keeper) {
    keeper.model = driver.model;
    std::swap(keeper.model.layout.shards[0], keeper.model.layout.shards[1]);  // of the same size
    begin(driver);
    keeper.primaryIsLost(Incarnation{2});
    successor = std::make_unique<Shard>(
        ShardOptions{
            .ps_task = 1, .ps_tasks = 2, .workers = 3, .rejoin_timeout = std::chrono::seconds(60)},
        driver.clock, driver.runner, &driver.peers, &keeper);
    keeper.heard = [&](uint64_t ticket) { successor->onReplicaHeard(ticket); };
    for (uint32_t rank = 0; rank < 2; ++rank) successor->join(rank, Incarnation{1});
    successor->declare(0, Incarnation{1}, driver.model);
    successor->onReplicaBackup();
    successor->refill(kReplicatedChief, kFirstEpoch, [](const WaitAnswer&) {});
    keeper.deliverAll();
  }

  std::shared_ptr<Recorded> push(uint32_t rank, uint64_t incarnation = 1) {
    auto values = std::make_shared<std::vector<float>>(driver.elements, -1.0F);
    auto recorded = std::make_shared<Recorded>();
    successor->push({.rank = rank,
                     .incarnation = Incarnation{incarnation},
                     .gradient = *values,
                     .owner = values},
                    [recorded](const PushAnswer& answer) {
                      recorded->answer = std::make_shared<PushAnswer>(answer);
                    });
    return recorded;
  }
  void pass(std::chrono::seconds time) {
    for (auto passed = std::chrono::seconds(0); passed < time; passed += std::chrono::seconds(2)) {
      driver.clock.advance(std::chrono::seconds(2));
      for (uint32_t rank = 0; rank < 2; ++rank) successor->heartbeat(rank, Incarnation{1});
      successor->tick();
    }
  }

 private:
  void begin(ShardDriver& first) {
    keeper.heard = [&](uint64_t ticket) { first.shard.onReplicaHeard(ticket); };
    first.shard.onReplicaBackup();
    keeper.deliverAll();
  }

 public:
  ReplicaKeeper keeper{3};
  ShardDriver driver;
  std::unique_ptr<Shard> successor;
};

// ps/0 has applied it: no other set will do.
TEST(ShardReplication, ADecidedGradientThatWasLostIsComputedAgainByTheSuccessorOfItsWorker) {
  RefilledFollower world;
  const auto first = world.push(0);
  const auto second = world.push(1);
  world.successor->onDecision(stepName(0), {0, 2});
  EXPECT_EQ(world.successor->awaitedText(), "the return of worker/2 in step 0");
  EXPECT_TRUE(world.successor->awaitsReturn());
  world.pass(std::chrono::seconds(50));
  world.successor->join(2, Incarnation{2});
  const auto third = world.push(2, 2);
  world.keeper.deliverAll();
  ASSERT_FALSE(first->waits());
  EXPECT_EQ(first->state().outcome, Outcome::kApplied);
  EXPECT_EQ(second->state().outcome, Outcome::kStale);
  EXPECT_EQ(third->state().outcome, Outcome::kApplied);
  EXPECT_EQ(world.successor->awaitedText(), "");
}

TEST(ShardReplication, ADecidedGradientWhoseWorkerDoesNotReturnEndsTheWaitWithTheReason) {
  RefilledFollower world;
  const auto first = world.push(0);
  const auto second = world.push(1);
  world.successor->onDecision(stepName(0), {0, 2});
  world.pass(std::chrono::seconds(58));
  EXPECT_TRUE(first->waits());
  world.pass(std::chrono::seconds(4));
  ASSERT_FALSE(first->waits());
  ASSERT_FALSE(second->waits());
  EXPECT_EQ(
      first->error(),
      "worker/2 was not there when ps/1 came back, and did not return within 60 s, in step 0; "
      "its gradient is in the parameters of ps/0, and went with the process of ps/1 before "
      "this one: start the job again, from its checkpoint");
  EXPECT_EQ(second->error(), first->error());
  EXPECT_EQ(world.successor->status().coordinator.global_step, 0u) << "not of another set";
}

TEST(ShardReplication, WithoutADecisionTheStepIsMadeByThoseWhoAreThere) {
  RefilledFollower world;
  const auto first = world.push(0);
  world.push(1);
  EXPECT_FALSE(world.successor->awaitsReturn());
  world.successor->onDecision(stepName(0), {0, 1});
  world.keeper.deliverAll();
  EXPECT_EQ(first->state().outcome, Outcome::kApplied);
}

// A host is lost, with ps/1 and worker/2: ps/1 had reported worker/2's gradient, and its successor never
// gets it.
TEST(ShardReplication, WhatAProcessOfAFollowerReportedIsForgottenWithIt) {
  ShardDriver driver(3, 2, 10, 0, 2);
  driver.push(2, 0);
  driver.shard.onReceived(1, stepName(0), 2);
  driver.shard.onFollowerLinked(1);
  driver.push(0, 0);
  driver.shard.onReceived(1, stepName(0), 0);
  EXPECT_TRUE(driver.peers.decisions.empty()) << "ps/1 does not hold the gradient of worker/2";
  driver.push(1, 0);
  driver.shard.onReceived(1, stepName(0), 1);
  ASSERT_EQ(driver.peers.decisions.size(), 1u);
  EXPECT_EQ(driver.peers.decisions[0], std::pair(uint64_t{0}, std::vector<uint32_t>{0, 1}));
}

}  // namespace
}  // namespace dtf::ps
