// Backup workers: ps/0 decides which gradients make a step, and the other ps follow, with a replica
// and without.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/shard/replicated_shard.h"
#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;
using std::chrono::seconds;

using Kind = cluster::OptimizerSpec::Kind;

TEST(SyncSets, TheLeaderDecidesOnceGradientsAreOnAllPs) {
  ShardDriver driver(3, 2, 5, 0, 2);
  const auto a = driver.push(0, 0, 1);
  const auto b = driver.push(1, 0, 2);
  const auto c = driver.push(2, 0, 4);
  driver.shard.peers().onReceived(1, stepName(0), 2);
  EXPECT_TRUE(driver.peers.decisions.empty());
  driver.shard.peers().onReceived(1, stepName(0), 0);
  ASSERT_EQ(driver.peers.decisions.size(), 1u);
  EXPECT_EQ(driver.peers.decisions[0].second, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(a->value(), 2.5f);
  EXPECT_EQ(b->state().outcome, Outcome::kStale);
  EXPECT_EQ(b->value(), 2.5f);
  EXPECT_EQ(c->state().outcome, Outcome::kApplied);
  driver.shard.peers().onReceived(1, stepName(0), 1);  // a report that was on its way
  EXPECT_THROW(driver.shard.peers().onReceived(1, stepName(2), 1), Error);
  EXPECT_THROW(driver.shard.peers().onReceived(2, stepName(1), 1), Error);
}

TEST(SyncSets, TheOthersReportAndFollow) {
  ShardDriver driver(3, 2, 5, 1, 2);
  const auto a = driver.push(0, 0, 1);
  const auto b = driver.push(1, 0, 2);
  EXPECT_EQ(driver.peers.reports, (std::vector<std::string>{"0:0", "0:1"}));
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(0), {0, 2}), Error)
      << "a gradient it doesn't hold";
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(1), {0, 1}), Error) << "a later step";
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(0), {1, 0}), Error) << "not ascending";
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(0), {0}), Error) << "not enough";
  EXPECT_TRUE(a->waits());
  driver.shard.peers().onDecision(stepName(0), {0, 1});
  EXPECT_EQ(a->value(), 1.5f);
  EXPECT_EQ(b->value(), 1.5f);
  driver.shard.peers().onDecision(stepName(0), {0, 1});  // again: no effect
  EXPECT_EQ(driver.shard.status().coordinator.global_step, 1u);
}

TEST(SyncSets, ADecisionIsAnnouncedWhenTheReplicaHasItAndToWhoeverMissedIt) {
  ReplicaKeeper keeper(2);
  ShardDriver driver(2, 1, 10, 0, 2, false, true, Kind::kGradientDescent, std::chrono::seconds(60),
                     &keeper);
  keeper.model = driver.model;
  keeper.heard = [&](uint64_t ticket) { driver.shard.backup().onHeard(ticket); };
  driver.shard.backup().onBackup();
  keeper.deliverAll();
  driver.push(1, 0);
  driver.shard.peers().onReceived(1, stepName(0), 1);
  EXPECT_TRUE(driver.peers.decisions.empty());
  keeper.deliverAll();
  ASSERT_EQ(driver.peers.decisions.size(), 1u);
  EXPECT_EQ(driver.peers.decisions[0], std::pair(uint64_t{0}, std::vector<uint32_t>{1}));
  // Another process of ps/1 reports the gradient that its worker repeats.
  driver.shard.peers().onReceived(1, stepName(0), 1);
  EXPECT_EQ(driver.peers.decisions.size(), 2u);
}

TEST(SyncSets, ADecisionWaitsForTheGradientsThatAProcessBeforeHeld) {
  ReplicaKeeper keeper(2);
  ShardDriver driver(2, 1, 10, 1, 2, false, true, Kind::kGradientDescent, std::chrono::seconds(60),
                     &keeper);
  keeper.heard = [&](uint64_t ticket) { driver.shard.backup().onHeard(ticket); };
  keeper.model = driver.model;
  std::swap(keeper.model.layout.shards[0], keeper.model.layout.shards[1]);  // of the same size
  driver.shard.backup().onBackup();
  keeper.deliverAll();
  driver.shard.peers().onDecision(stepName(0), {1});
  const auto late = driver.push(1, 0);
  keeper.deliverAll();
  EXPECT_EQ(late->state().outcome, Outcome::kApplied);
  EXPECT_TRUE(driver.peers.reports.empty());  // ps/0 has decided
  // A new link to ps/0: the report is repeated.
  driver.push(0, 1);
  driver.shard.peers().onLeaderLinked();
  EXPECT_EQ(driver.peers.reports, (std::vector<std::string>{"1:0", "1:0"}));
}

// ps/1 of two, filled from its replica; two of three workers make a step. worker/2 was lost with
// the previous process.
class RefilledFollower {
 public:
  RefilledFollower()
      : driver(3, 2, 10, 1, 2, false, true, Kind::kGradientDescent, std::chrono::seconds(60),
               &keeper) {
    keeper.model = driver.model;
    std::swap(keeper.model.layout.shards[0], keeper.model.layout.shards[1]);  // of the same size
    begin(driver);
    keeper.primaryIsLost(Incarnation{2});
    successor = std::make_unique<shard::Shard>(
        shard::ShardOptions{
            .ps_task = 1, .ps_tasks = 2, .workers = 3, .rejoin_timeout = std::chrono::seconds(60)},
        driver.clock, driver.runner, &driver.peers, &keeper);
    keeper.heard = [&](uint64_t ticket) { successor->backup().onHeard(ticket); };
    for (uint32_t rank = 0; rank < 2; ++rank) successor->workers().join(rank, Incarnation{1});
    successor->workers().declare(0, Incarnation{1}, driver.model);
    successor->backup().onBackup();
    successor->recovery().refill(kReplicatedChief, kFirstEpoch, [](const WaitAnswer&) {});
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
      for (uint32_t rank = 0; rank < 2; ++rank)
        successor->workers().heartbeat(rank, Incarnation{1});
      successor->tick();
    }
  }

 private:
  void begin(ShardDriver& first) {
    keeper.heard = [&](uint64_t ticket) { first.shard.backup().onHeard(ticket); };
    first.shard.backup().onBackup();
    keeper.deliverAll();
  }

 public:
  ReplicaKeeper keeper{3};
  ShardDriver driver;
  std::unique_ptr<shard::Shard> successor;
};

// ps/0 has applied the lost gradient: no other set will do.
TEST(SyncSets, ADecidedGradientThatWasLostIsComputedAgainByTheSuccessorOfItsWorker) {
  RefilledFollower world;
  const auto first = world.push(0);
  const auto second = world.push(1);
  world.successor->peers().onDecision(stepName(0), {0, 2});
  EXPECT_EQ(world.successor->awaited().text, "the return of worker/2 in step 0");
  EXPECT_TRUE(world.successor->awaited().is_return);
  world.pass(std::chrono::seconds(50));
  world.successor->workers().join(2, Incarnation{2});
  const auto third = world.push(2, 2);
  world.keeper.deliverAll();
  ASSERT_FALSE(first->waits());
  EXPECT_EQ(first->state().outcome, Outcome::kApplied);
  EXPECT_EQ(second->state().outcome, Outcome::kStale);
  EXPECT_EQ(third->state().outcome, Outcome::kApplied);
  EXPECT_EQ(world.successor->awaited().text, "");
}

TEST(SyncSets, ADecidedGradientWhoseWorkerDoesNotReturnEndsTheWaitWithTheReason) {
  RefilledFollower world;
  const auto first = world.push(0);
  const auto second = world.push(1);
  world.successor->peers().onDecision(stepName(0), {0, 2});
  world.pass(std::chrono::seconds(58));
  EXPECT_TRUE(first->waits());
  world.pass(std::chrono::seconds(4));
  ASSERT_FALSE(first->waits());
  ASSERT_FALSE(second->waits());
  EXPECT_EQ(first->error(),
            "worker/2 was absent when ps/1 came back, and did not return within 60 s, in step 0; "
            "ps/0 has applied its gradient, but ps/1 lost it with its earlier process: start "
            "the job again, from its checkpoint");
  EXPECT_EQ(second->error(), first->error());
  EXPECT_EQ(world.successor->status().coordinator.global_step, 0u) << "not of another set";
}

TEST(SyncSets, WithoutADecisionTheStepIsMadeByThoseWhoAreThere) {
  RefilledFollower world;
  const auto first = world.push(0);
  world.push(1);
  EXPECT_FALSE(world.successor->awaited().is_return);
  world.successor->peers().onDecision(stepName(0), {0, 1});
  world.keeper.deliverAll();
  EXPECT_EQ(first->state().outcome, Outcome::kApplied);
}

// A host is lost with ps/1 and worker/2. ps/1 had reported worker/2's gradient, and its successor
// never receives it.
TEST(SyncSets, WhatAProcessOfAFollowerReportedIsForgottenWithIt) {
  ShardDriver driver(3, 2, 10, 0, 2);
  driver.push(2, 0);
  driver.shard.peers().onReceived(1, stepName(0), 2);
  driver.shard.peers().onFollowerLinked(1);
  driver.push(0, 0);
  driver.shard.peers().onReceived(1, stepName(0), 0);
  EXPECT_TRUE(driver.peers.decisions.empty()) << "ps/1 does not hold the gradient of worker/2";
  driver.push(1, 0);
  driver.shard.peers().onReceived(1, stepName(0), 1);
  ASSERT_EQ(driver.peers.decisions.size(), 1u);
  EXPECT_EQ(driver.peers.decisions[0], std::pair(uint64_t{0}, std::vector<uint32_t>{0, 1}));
}

// Two workers, seven examples in batches of two: the second step of an epoch has three.
TEST(SyncSets, AGradientWeighsWhatItHasExamples) {
  ShardDriver driver(arena::EpochData{.examples = 7, .batch_size = 2}, 2, 2, 10);
  driver.push(0, 0, 10);
  EXPECT_EQ(driver.push(1, 0, 20)->value(), 15) << "two of two each";
  driver.push(0, 1, 3);
  EXPECT_EQ(driver.push(1, 1, 6)->value(), 15 + 4) << "two and one";
}

TEST(SyncSets, AnEmptyShareIsLeftOut) {
  ShardDriver driver(arena::EpochData{.examples = 5, .batch_size = 2}, 2, 2, 10);
  driver.push(0, 0, 10);
  driver.push(1, 0, 20);
  const auto first = driver.push(0, 1, 4);
  EXPECT_TRUE(first->waits()) << "for the push of the empty share";
  EXPECT_EQ(driver.push(1, 1, 1000)->value(), 15 + 4);
}

TEST(SyncSets, EachBatchOfAWorkerHasItsOwnShare) {
  ShardDriver driver(arena::EpochData{.examples = 2, .batch_size = 2}, 2, 3, 10);
  driver.push(0, 0, 10, 0);
  driver.push(0, 0, 1000, 1);  // the third share, of two examples
  EXPECT_EQ(driver.push(1, 0, 20)->value(), 15);
}

// Two of three workers make a step, in batches of two. The second step of an epoch is short: of
// seven examples worker/0 has one there, of eight worker/1 has one, too.
ShardDriver backups(uint64_t examples, uint32_t ps_task = 0, uint32_t ps_tasks = 1,
                    Duration rejoin = {}, ReplicaLink* replica = nullptr) {
  return ShardDriver(3, 2, 10, ps_task, ps_tasks, false, true, Kind::kGradientDescent, rejoin,
                     replica, std::nullopt, std::nullopt,
                     arena::EpochData{.examples = examples, .batch_size = 2});
}

void firstStepOf(ShardDriver& driver) {
  driver.push(0, 0, 1);
  driver.push(1, 0, 1);
  ASSERT_EQ(driver.shard.status().coordinator.global_step, 1u);
}

// Adam keeps moving without a gradient, so a step of zeros would show.
TEST(SyncSets, EmptySharesCrowdOutNoExamples) {
  ShardDriver alone(1, 1, 10, 0, 1, false, true, Kind::kAdam);
  ShardDriver driver(3, 2, 10, 0, 1, false, true, Kind::kAdam, {}, nullptr, std::nullopt,
                     std::nullopt, arena::EpochData{.examples = 7, .batch_size = 2});
  alone.push(0, 0, 1);
  firstStepOf(driver);
  const auto first = driver.push(1, 1, 0);
  const auto second = driver.push(2, 1, 0);
  EXPECT_TRUE(first->waits() && second->waits()) << "the example is with worker/0";
  const auto last = driver.push(0, 1, 5);
  ASSERT_FALSE(last->waits());
  EXPECT_EQ(last->state().outcome, Outcome::kApplied);
  EXPECT_EQ(last->value(), alone.push(0, 1, 5)->value());
  EXPECT_EQ(first->state().outcome, Outcome::kStale);
  EXPECT_EQ(second->value(), last->value());
  EXPECT_EQ(driver.shard.status().coordinator.gradients_applied, 3u);
}

TEST(SyncSets, AShortStepTakesAsManyAsHaveExamples) {
  ShardDriver two = backups(8);
  firstStepOf(two);
  two.push(2, 1, 1000);
  EXPECT_TRUE(two.push(0, 1, 4)->waits());
  EXPECT_EQ(two.push(1, 1, 8)->value(), 1 + 6);
  ShardDriver three = backups(9);
  firstStepOf(three);
  three.push(2, 1, 4);
  EXPECT_EQ(three.push(0, 1, 8)->value(), 1 + 6) << "any two of them";
}

TEST(SyncSets, TheOthersFollowInAShortStep) {
  ShardDriver driver = backups(7, 1, 2);
  for (const uint32_t rank : {0, 1}) driver.push(rank, 0);
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(0), {0}), Error)
      << "all have examples in it";
  driver.shard.peers().onDecision(stepName(0), {0, 1});
  for (const uint32_t rank : {0, 1, 2}) driver.push(rank, 1);
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(1), {1}), Error) << "of no examples";
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(1), {0, 1}), Error) << "an empty share";
  EXPECT_THROW(driver.shard.peers().onDecision(stepName(1), {}), Error);
  driver.shard.peers().onDecision(stepName(1), {0});
  EXPECT_EQ(driver.shard.status().coordinator.global_step, 2u);
}

TEST(SyncSets, TheSetOfAShortStepIsAnnouncedOnceTheReplicaHasIt) {
  ReplicaKeeper keeper(3);
  ShardDriver driver = backups(7, 0, 2, seconds(60), &keeper);
  keeper.model = driver.model;
  keeper.heard = [&](uint64_t ticket) { driver.shard.backup().onHeard(ticket); };
  driver.shard.backup().onBackup();
  keeper.deliverAll();
  for (const uint64_t step : {0, 1}) {
    for (const uint32_t rank : {1, 0}) {
      driver.push(rank, step);
      driver.shard.peers().onReceived(1, stepName(step), rank);
    }
    keeper.deliverAll();
  }
  ASSERT_EQ(driver.peers.decisions.size(), 2u);
  EXPECT_EQ(driver.peers.decisions[1], std::pair(uint64_t{1}, std::vector<uint32_t>{0}));
}

TEST(SyncSets, AShortStepIsMadeWithoutOneThatDoesNotReturn) {
  ShardDriver driver = backups(8, 0, 1, seconds(30));
  firstStepOf(driver);
  driver.shard.workers().markLost(1);
  driver.push(2, 1, 0);
  const auto waiting = driver.push(0, 1, 4);
  EXPECT_TRUE(waiting->waits());
  EXPECT_EQ(driver.shard.awaited().text, "the return of worker/1 in step 1");
  driver.clock.advance(seconds(31));
  for (const uint32_t rank : {0, 2}) driver.shard.workers().heartbeat(rank, Incarnation{1});
  driver.shard.tick();
  ASSERT_FALSE(waiting->waits());
  EXPECT_EQ(waiting->value(), 1 + 4);
}

TEST(SyncSets, AShortStepFailsWithWhoHadAllItsExamples) {
  ShardDriver driver = backups(7, 0, 1, seconds(30));
  firstStepOf(driver);
  driver.push(2, 1, 0);
  const auto waiting = driver.push(1, 1, 0);
  driver.shard.workers().markLost(0);
  EXPECT_TRUE(waiting->waits());
  driver.clock.advance(seconds(31));
  for (const uint32_t rank : {1, 2}) driver.shard.workers().heartbeat(rank, Incarnation{1});
  driver.shard.tick();
  EXPECT_NE(waiting->error().find("in step 1; the other workers have no examples in it"),
            std::string::npos)
      << waiting->error();
}

}  // namespace
}  // namespace dtf::replication
