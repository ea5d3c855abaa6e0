// A shard with a replica: its workers' view when its process is lost and another takes its place.

#include <gtest/gtest.h>

#include "tests/unit/shard/replicated_shard.h"

namespace dtf::shard {
namespace {

TEST(ShardReplication, APushIsAnsweredWhenTheReplicaHasIt) {
  Replicated world(2, 0, 10);
  world.driver().pull(0);
  const auto pushed = world.driver().push(0, 0);
  EXPECT_TRUE(pushed->waits());
  EXPECT_EQ(world.driver().pull(1)->value(), 0);  // and no worker sees it
  world.keeper.deliverAll();
  EXPECT_EQ(pushed->state().outcome, replication::Outcome::kApplied);
  EXPECT_EQ(pushed->value(), 1);
}

// Returns the reply to the chief's question whether the replica is complete.
std::shared_ptr<std::string> awaitReplica(ShardDriver& driver,
                                          uint64_t epoch = replication::kFirstEpoch) {
  auto text = std::make_shared<std::string>("waits");
  driver.shard.recovery().awaitReplica(kReplicatedChief, epoch,
                                       [text](const replication::WaitAnswer& answer) {
                                         const Error* error = std::get_if<Error>(&answer);
                                         *text = error ? error->message() : "whole";
                                       });
  return text;
}

TEST(ShardReplication, TheChiefIsToldWhenTheReplicaIsWhole) {
  Replicated world(2, 0, 10);
  EXPECT_EQ(*awaitReplica(world.driver()), "whole");
  world.driver().shard.backup().onBackup();  // another process
  const auto first = awaitReplica(world.driver());
  EXPECT_EQ(*first, "waits");
  const auto second = awaitReplica(world.driver());
  EXPECT_NE(first->find("gave way"), std::string::npos) << *first;
  world.keeper.deliverAll();
  EXPECT_EQ(*second, "whole");
  EXPECT_NE(awaitReplica(world.driver(), replication::kFirstEpoch + 1)->find("is on epoch"),
            std::string::npos);
}

TEST(ShardReplication, WhoWaitsForTheReplicaOfAnEpochThatIsLeftIsTold) {
  Replicated world(2, 0, 10);
  world.driver().shard.backup().onBackup();
  const auto asked = awaitReplica(world.driver());
  const std::vector<float> values(world.driver().elements);
  ASSERT_TRUE(world.driver().shard.initialise(0, kReplicatedChief, values,
                                              replication::nextEpoch(replication::kFirstEpoch, 1)));
  EXPECT_NE(asked->find("left the epoch"), std::string::npos) << *asked;
  const auto later =
      awaitReplica(world.driver(), replication::nextEpoch(replication::kFirstEpoch, 1));
  world.driver().shard.failAll(Error(ErrorCode::kUnavailable, "the end"));
  EXPECT_EQ(*later, "the end");
}

TEST(ShardReplication, SyncAStepThatWasAnsweredIsAnsweredAgain) {
  Replicated world(2, 2, 10);
  world.driver().push(0, 0, 1);
  world.driver().push(1, 0, 3);
  world.keeper.deliverAll();
  world.driver().push(0, 1, 5);  // of the next step, and lost
  EXPECT_FALSE(world.loseAndRefill());
  const auto again = world.driver().push(1, 0, 3);
  EXPECT_EQ(again->state().outcome, replication::Outcome::kApplied);
  EXPECT_EQ(again->state().next_step, 1u);
  EXPECT_EQ(again->value(), 2);
  // A worker needs the parameters of step 0 as long as another ps waits for its push of step 0.
  EXPECT_EQ(world.driver().pull(0, 1, {.step = 0})->value(), 0);
  world.driver().push(0, 1, 5);
  const auto both = world.driver().push(1, 1, 7);
  world.keeper.deliverAll();
  EXPECT_EQ(both->value(), 8);
}

TEST(ShardReplication, SyncBatchesThatWereKeptForTheirStepAreComputedAgain) {
  Replicated world(1, 3, 10);
  EXPECT_EQ(world.driver().push(0, 0, 1, 0)->state().outcome, replication::Outcome::kQueued);
  EXPECT_FALSE(world.loseAndRefill());
  const auto next = world.driver().push(0, 0, 1, 1);
  EXPECT_EQ(next->state().outcome, replication::Outcome::kWentBack);
  EXPECT_EQ(next->state().next_step, 0u);
  EXPECT_EQ(next->state().next_batch, 0u);
  EXPECT_EQ(next->state().epoch, replication::kFirstEpoch);
}

TEST(ShardReplication, WhatIsKeptOfAnotherEpochIsNotTaken) {
  Replicated world(2, 2, 10);
  const std::optional<Error> error =
      world.loseAndRefill(replication::nextEpoch(replication::kFirstEpoch, 4));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnavailable);
  EXPECT_FALSE(world.driver().shard.status().initialised);
}

TEST(ShardReplication, ALostReplicaIsAwaitedByName) {
  Replicated world(2, 0, 10);
  world.driver().pull(0);
  world.driver().push(0, 0);
  world.keeper.startAgain();
  world.driver().shard.backup().onBackup();
  for (int i = 0; i < 3; ++i) {
    world.driver().clock.advance(std::chrono::seconds(2));
    world.driver().shard.tick();
    EXPECT_EQ(world.driver().shard.awaited().text,
              "ps/0 to take the replica of ps/0");  // of one ps
    EXPECT_TRUE(world.driver().shard.awaited().is_return);
  }
}

TEST(ShardReplication, AnUpdateWhoseReplicaIsAwayWaitsForItByName) {
  Replicated world(2, 2, 10);
  ShardDriver& driver = world.driver();
  const auto first = driver.push(0, 0);
  const auto second = driver.push(1, 0);
  driver.clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(driver.shard.awaited().text, "the update itself in step 0");
  EXPECT_FALSE(driver.shard.awaited().is_return);
  world.keeper.is_away = true;
  for (int i = 0; i < 20; ++i) {  // longer than a step may take
    driver.clock.advance(std::chrono::seconds(8));
    driver.shard.workers().heartbeat(0, Incarnation{1});
    driver.shard.workers().heartbeat(1, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_EQ(driver.shard.awaited().text, "the replica on ps/0, which is lost");  // of one ps
  EXPECT_TRUE(driver.shard.awaited().is_return);
  EXPECT_TRUE(first->waits());
  world.keeper.is_away = false;
  world.keeper.deliverAll();
  EXPECT_EQ(first->state().outcome, replication::Outcome::kApplied);
  EXPECT_EQ(second->state().outcome, replication::Outcome::kApplied);
  EXPECT_EQ(driver.shard.awaited().text, "");
  EXPECT_FALSE(driver.shard.awaited().is_return);
}

TEST(ShardReplication, AReplicaThatIsAwayKeepsNobodyWhoseUpdateItHas) {
  Replicated world(2, 2, 10);
  world.driver().push(0, 0);
  world.keeper.is_away = true;
  world.driver().clock.advance(std::chrono::seconds(2));
  EXPECT_EQ(world.driver().shard.awaited().text, "worker/1 in step 0");
  EXPECT_FALSE(world.driver().shard.awaited().is_return);
}

// A step takes two of three workers. The second step of an epoch has one example, of worker/0.
TEST(ShardReplication, AShortStepOfBackupWorkersIsTakenBack) {
  Replicated world(3, 2, 10, std::nullopt, {.examples = 4, .batch_size = 1});
  for (const uint32_t rank : {0, 1}) world.driver().push(rank, 0, 2);
  world.keeper.deliverAll();
  const auto pushed = world.driver().push(0, 1);
  world.keeper.deliverAll();
  ASSERT_EQ(pushed->state().outcome, replication::Outcome::kApplied);
  const std::optional<Error> error = world.loseAndRefill();
  EXPECT_FALSE(error) << error->message();
  const auto again = world.driver().push(0, 1);
  EXPECT_EQ(again->state().outcome, replication::Outcome::kApplied);
  EXPECT_EQ(again->state().next_step, 2u);
  EXPECT_EQ(again->value(), pushed->value());
}

}  // namespace
}  // namespace dtf::shard
