// Grants of steps across the loss of a ps, in asynchronous training on a shard with a replica.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/shard/replicated_shard.h"

namespace dtf::replication {
namespace {

using namespace shard;

TEST(AsyncGrants, NothingThatWasAnsweredIsLostOrAppliedTwice) {
  Replicated world(2, 0, 4);
  world.driver().pull(0);
  world.driver().pull(1);
  const auto answered = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_EQ(answered->state().global_step, 1u);
  const auto unanswered = world.driver().push(1, 0, 2);
  EXPECT_FALSE(world.loseAndRefill());
  EXPECT_TRUE(unanswered->waits());
  EXPECT_EQ(world.driver().shard.held().step, 1u);
  EXPECT_EQ(world.driver().shard.held().epoch, kFirstEpoch);
  // Both workers repeat their push; the ps has answered the first one's before.
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

TEST(AsyncGrants, WhatTheReplicaReceivedIsAppliedOnceThoughItsAnswerWasLost) {
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

TEST(AsyncGrants, NoStepIsGrantedTwice) {
  Replicated world(2, 0, 2);
  world.driver().pull(0);  // both steps are granted
  world.driver().pull(1);
  EXPECT_FALSE(world.loseAndRefill());
  // A new process of worker/0 asks: it gets its step again, and worker/1 keeps the other one.
  EXPECT_FALSE(world.driver().pull(0)->waits());
  const auto first = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_TRUE(first->waits());  // there is no third step, but worker/1 may give its step back
  const auto second = world.driver().push(1, 0);
  world.keeper.deliverAll();
  EXPECT_TRUE(second->state().done);
  EXPECT_TRUE(first->state().done);
  EXPECT_EQ(second->state().global_step, 2u);
}

// The lost ps may have granted both remaining steps. But all three workers ask, so none holds a
// grant.
TEST(AsyncGrants, WhereAllAskNobodyHoldsAGrantOfBefore) {
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

TEST(AsyncGrants, AGrantWhoseWorkerIsGonePassesOn) {
  Replicated world(2, 0, 2);
  world.driver().pull(0);
  world.driver().pull(1);
  EXPECT_FALSE(world.loseAndRefill());
  const auto first = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_TRUE(first->waits());
  world.driver().shard.workers().markLost(1);
  EXPECT_FALSE(first->waits());
  EXPECT_FALSE(first->state().done);
}

TEST(AsyncGrants, AGrantThatIsShownLateCountsStill) {
  Replicated world(2, 0, 10);
  world.driver().pull(0);
  EXPECT_FALSE(world.loseAndRefill());
  world.driver().clock.advance(std::chrono::seconds(61));  // it evaluated meanwhile
  world.driver().shard.workers().heartbeat(0, kReplicatedChief);
  world.driver().shard.tick();
  const auto late = world.driver().push(0, 0);
  world.keeper.deliverAll();
  EXPECT_EQ(late->state().outcome, Outcome::kApplied);
}

// Each of two workers has 5 of the 10 steps.
constexpr arena::EpochData kTenBatches{.examples = 10, .batch_size = 1};

// Lets time pass while both workers send heartbeats.
void pass(ShardDriver& driver, Duration time) {
  driver.clock.advance(time);
  for (const uint32_t rank : {0, 1}) driver.shard.workers().heartbeat(rank, Incarnation{1});
  driver.shard.tick();
}

TEST(AsyncGrants, WhoHasDoneItsPartOfAnEpochWaitsForTheOthers) {
  ShardDriver driver(kTenBatches, 2, 0, 10);
  driver.pull(0);
  driver.pull(1);
  for (uint64_t step = 0; step < 4; ++step) EXPECT_FALSE(driver.push(0, step)->waits());
  const auto done = driver.push(0, 4);
  EXPECT_TRUE(done->waits());
  EXPECT_TRUE(driver.shard.awaited().is_return) << "it has no deadline while the other pushes";
  for (uint64_t step = 0; step < 5; ++step) {
    pass(driver, std::chrono::seconds(50));
    EXPECT_EQ(driver.shard.awaited().text, "the rest of the epoch, which belongs to worker/1");
    ASSERT_TRUE(done->waits());
    driver.push(1, step);
  }
  EXPECT_TRUE(done->state().done);
  EXPECT_EQ(done->state().global_step, 10u);
}

// The hanging worker's heartbeats arrive all the time.
TEST(AsyncGrants, AWorkerThatHangsInItsPartFailsThoseWhoWait) {
  ShardDriver driver(kTenBatches, 2, 0, 10);
  driver.pull(0);
  driver.pull(1);
  driver.push(1, 0);
  for (uint64_t step = 0; step < 4; ++step) driver.push(0, step);
  const auto done = driver.push(0, 4);
  pass(driver, std::chrono::seconds(59));
  EXPECT_TRUE(driver.shard.awaited().is_return);
  pass(driver, std::chrono::seconds(2));
  EXPECT_FALSE(driver.shard.awaited().is_return) << "it pushes no more";
  EXPECT_TRUE(done->waits());
  EXPECT_EQ(driver.shard.awaited().text, "the rest of the epoch, which belongs to worker/1");
  pass(driver, std::chrono::seconds(60));
  EXPECT_EQ(
      done->error(),
      "worker/0 has waited 60 s on ps/0 for the rest of the epoch, which belongs to worker/1");
}

TEST(AsyncGrants, APartIsLeftToOthersWhenItsWorkerDoesNotReturn) {
  ShardDriver driver(kTenBatches, 2, 0, 10, std::chrono::seconds(30));
  driver.pull(0);
  driver.pull(1);
  driver.shard.workers().markLost(1);
  for (uint64_t step = 0; step < 4; ++step) driver.push(0, step);
  auto next = driver.push(0, 4);
  EXPECT_TRUE(next->waits());
  driver.clock.advance(std::chrono::seconds(29));
  driver.shard.workers().heartbeat(0, Incarnation{1});
  driver.shard.tick();
  EXPECT_TRUE(next->waits()) << "it may return";
  driver.clock.advance(std::chrono::seconds(2));
  driver.shard.workers().heartbeat(0, Incarnation{1});
  driver.shard.tick();
  for (uint64_t step = 5; step < 10; ++step) {
    ASSERT_FALSE(next->waits()) << step;
    next = driver.push(0, step);
  }
  EXPECT_TRUE(next->state().done);
}

TEST(AsyncGrants, AWorkerThatReturnsDoesWhatIsLeftOfItsPart) {
  ShardDriver driver(kTenBatches, 2, 0, 10, std::chrono::seconds(30));
  driver.pull(0);
  driver.pull(1);
  driver.push(1, 0);
  driver.shard.workers().markLost(1);
  for (uint64_t step = 0; step < 4; ++step) driver.push(0, step);
  const auto done = driver.push(0, 4);
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_EQ(driver.pull(1, 2)->state().next_step, 1u);
  for (uint64_t step = 1; step < 5; ++step) driver.push(1, step, 1, 0, 2);
  EXPECT_TRUE(done->state().done);
}

TEST(AsyncGrants, ARefilledPsRemembersWhichPartsAreDone) {
  Replicated world(2, 0, 10, std::nullopt, kTenBatches);
  world.driver().pull(0);
  world.driver().pull(1);
  world.driver().push(1, 0);
  world.keeper.deliverAll();
  for (uint64_t step = 0; step < 5; ++step) {
    world.driver().push(0, step);
    world.keeper.deliverAll();
  }
  EXPECT_FALSE(world.loseAndRefill());
  const auto done = world.driver().push(0, 4);  // the repeated push was not answered
  world.keeper.deliverAll();
  EXPECT_TRUE(done->waits());
  world.driver().pull(1);
  for (uint64_t step = 1; step < 5; ++step) {
    EXPECT_TRUE(done->waits()) << step;
    world.driver().push(1, step);
    world.keeper.deliverAll();
  }
  EXPECT_TRUE(done->state().done);
}

// The worker that returns counts from the clock of the others on, which have stopped.
TEST(AsyncGrants, AWorkerThatHasDoneItsPartHoldsNobodyBack) {
  ShardDriver driver(kTenBatches, 2, 0, 10, std::chrono::seconds(60), 0);
  uint64_t clock = driver.pull(0)->state().progress;
  driver.pull(1);
  driver.shard.workers().markLost(1);
  for (uint64_t step = 0; step < 4; ++step) clock = driver.pushAt(clock, 0, step)->state().progress;
  const auto done = driver.pushAt(clock, 0, 4);
  driver.shard.workers().join(1, Incarnation{2});
  clock = driver.pull(1, 2)->state().progress;
  for (uint64_t step = 0; step < 5; ++step) {
    const auto pushed = driver.pushAt(clock, 1, step, 2);
    ASSERT_FALSE(pushed->waits()) << step;
    clock = pushed->state().progress;
  }
  EXPECT_TRUE(done->state().done);
}

// A checkpoint of a job whose workers shared the steps as they came may leave such parts.
TEST(AsyncGrants, WhereAllPartsAreDoneTheStepsThatAreLeftAreForAll) {
  ShardDriver driver(arena::EpochData{.examples = 4, .batch_size = 1}, 2, 0, 6);
  driver.pull(0);
  driver.pull(1);
  for (uint64_t step = 0; step < 3; ++step) driver.push(0, step);
  for (uint64_t step = 0; step < 2; ++step) driver.push(1, step);
  const auto last = driver.push(1, 2);
  EXPECT_TRUE(last->state().done);
}

}  // namespace
}  // namespace dtf::replication
