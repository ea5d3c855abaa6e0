// Bounded training on one ps (AsyncCoordinator): which worker waits for which, and for how long.
// schedule_test.cc covers several ps.

#include <gtest/gtest.h>

#include "common/replication/async_coordinator.h"
#include "tests/unit/shard/replicated_shard.h"

namespace dtf::shard {
namespace {

using std::chrono::seconds;

TEST(BoundedTraining, NobodyBeginsAStepFurtherAheadThanTheFileSays) {
  ShardDriver driver(ShardDriver::Bounded{2}, 2, 100);
  driver.pull(0);
  driver.pull(1);
  EXPECT_EQ(driver.pushAt(1, 0, 0)->state().progress, 2u);
  EXPECT_EQ(driver.pushAt(2, 0, 1)->value(), 2);
  const auto ahead = driver.pushAt(3, 0, 2);
  EXPECT_TRUE(ahead->waits()) << "three steps ahead";
  EXPECT_EQ(driver.pushAt(1, 1, 0)->state().progress, 2u) << "the slowest waits for nobody";
  EXPECT_EQ(ahead->value(), 4) << "with all that came meanwhile";
  EXPECT_EQ(ahead->state().progress, 4u);
}

TEST(BoundedTraining, WithStalenessZeroEachStepHasAllOfTheStepsBefore) {
  ShardDriver driver(ShardDriver::Bounded{0}, 3, 100);
  for (uint32_t rank = 0; rank < 3; ++rank) driver.pull(rank);
  for (uint64_t step = 0; step < 4; ++step) {
    const auto first = driver.pushAt(step + 1, 0, step);
    const auto second = driver.pushAt(step + 1, 2, step);
    EXPECT_TRUE(first->waits());
    EXPECT_TRUE(second->waits());
    const auto third = driver.pushAt(step + 1, 1, step);
    for (const auto& answer : {first, second, third})
      EXPECT_EQ(answer->value(), static_cast<float>(3 * (step + 1)));
  }
}

TEST(BoundedTraining, AWorkerThatIsLostOrHasFinishedIsNotWaitedFor) {
  ShardDriver driver(ShardDriver::Bounded{0}, 3, 100);
  for (uint32_t rank = 0; rank < 3; ++rank) driver.pull(rank);
  const auto waits = driver.pushAt(1, 0, 0);
  driver.shard.workers().markLost(1);
  EXPECT_TRUE(waits->waits());
  driver.shard.workers().finish(2, Incarnation{1});
  EXPECT_EQ(waits->value(), 1);
}

TEST(BoundedTraining, AWorkerThatReturnsBeginsWhereTheSlowestIs) {
  ShardDriver driver(ShardDriver::Bounded{1}, 2, 100);
  driver.pull(0);
  driver.pull(1);
  driver.shard.workers().markLost(1);
  for (uint64_t step = 0; step < 20; ++step)
    EXPECT_FALSE(driver.pushAt(step + 1, 0, step)->waits());
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_FALSE(driver.pushAt(21, 0, 20)->waits()) << "it has not begun";
  const auto back = driver.pull(1, 2);
  EXPECT_EQ(back->state().next_step, 0u) << "its own count";
  EXPECT_EQ(back->state().progress, 22u);
  EXPECT_FALSE(driver.pushAt(22, 0, 21)->waits());
  const auto ahead = driver.pushAt(23, 0, 22);
  EXPECT_TRUE(ahead->waits());
  EXPECT_EQ(driver.pushAt(22, 1, 0, 2)->state().progress, 23u);
  EXPECT_FALSE(ahead->waits());
}

// The launcher restarts a worker at once, but the new process may take minutes to read its data.
TEST(BoundedTraining, AWorkerThatIsReplacedIsWaitedForFromItsFirstPullOn) {
  ShardDriver driver(ShardDriver::Bounded{0}, 2, 100);
  driver.pull(0);
  driver.pull(1);
  const auto waits = driver.pushAt(1, 0, 0);
  EXPECT_TRUE(waits->waits());
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_FALSE(waits->waits());
  EXPECT_EQ(driver.pushAt(2, 0, 1)->state().progress, 3u);
  EXPECT_EQ(driver.pull(1, 2)->state().progress, 3u);
  const auto next = driver.pushAt(3, 0, 2);
  EXPECT_TRUE(next->waits());
  driver.pushAt(3, 1, 0, 2);
  EXPECT_FALSE(next->waits());
}

// A push that is applied after its process was replaced doesn't count as progress of the new
// process.
TEST(BoundedTraining, AQueuedPushDoesNotCountForASuccessor) {
  for (const uint32_t ps_task : {0u, 1u}) {
    ShardDriver driver(2, 0, 1000, ps_task, 2, true, true,
                       cluster::OptimizerSpec::Kind::kGradientDescent, {}, nullptr, 0);
    const auto push = [&](uint64_t progress, uint32_t rank, uint64_t step) {
      return driver.pushSized(rank, step, 1, 0, 1, driver.elements, replication::kFirstEpoch,
                              progress);
    };
    const auto finishAll = [&] {
      while (driver.runner.finish()) continue;
    };
    driver.pull(0, 1, {.progress = 1});
    driver.pull(1, 1, {.progress = 1});
    push(1, 1, 0);
    driver.shard.workers().join(1, Incarnation{2});
    finishAll();
    for (uint64_t step = 0; step < 3; ++step) {
      const auto alone = push(step + 1, 0, step);
      finishAll();
      EXPECT_FALSE(alone->waits()) << "ps/" << ps_task << " step " << step;
    }
  }
}

// The clock of a worker that was lost long before doesn't count.
TEST(BoundedTraining, WhoReturnsWhenNobodyIsThereBeginsWhereTheFurthestWas) {
  ShardDriver driver(ShardDriver::Bounded{1}, 3, 1000);
  for (uint32_t rank = 0; rank < 3; ++rank) driver.pull(rank);
  driver.pushAt(1, 1, 0);
  driver.shard.workers().markLost(1);
  for (uint64_t step = 0; step < 10; ++step) {
    driver.pushAt(step + 1, 0, step);
    driver.pushAt(step + 1, 2, step);
  }
  driver.shard.workers().markLost(2);
  for (uint64_t step = 10; step < 100; ++step) driver.pushAt(step + 1, 0, step);
  driver.shard.workers().markLost(0);
  driver.shard.workers().join(2, Incarnation{2});
  EXPECT_EQ(driver.pull(2, 2)->state().progress, 101u);
  driver.shard.workers().join(0, Incarnation{2});
  EXPECT_EQ(driver.pull(0, 2)->state().progress, 101u);
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_EQ(driver.pull(1, 2)->state().progress, 101u);
}

TEST(BoundedTraining, ThePs0CountsByItselfWhateverAWorkerTells) {
  ShardDriver driver(ShardDriver::Bounded{1}, 2, 1000);
  driver.pull(0);
  driver.pull(1);
  EXPECT_EQ(driver.pushAt(900, 1, 0)->state().progress, 2u);
  EXPECT_EQ(driver.pull(1, 1, {.progress = 500})->state().progress, 2u);
  driver.shard.workers().markLost(0);
  driver.shard.workers().join(0, Incarnation{2});
  EXPECT_EQ(driver.pull(0, 2)->state().progress, 2u);
}

TEST(BoundedTraining, AnotherPsHearsOfTheProgressFromTheWorkers) {
  ShardDriver driver(ShardDriver::Bounded{1}, 2, 100, 1, 2);
  EXPECT_EQ(driver.pull(0)->state().progress, 0u);
  driver.pull(1);
  EXPECT_EQ(driver.pull(0, 1, {.progress = 41})->state().progress, 41u);
  EXPECT_EQ(driver.pushAt(41, 0, 0)->state().progress, 42u);
  EXPECT_FALSE(driver.pushAt(42, 0, 1)->waits()) << "of the other it has heard nothing yet";
  EXPECT_EQ(driver.pull(1, 1, {.progress = 42})->state().progress, 42u);
  const auto ahead = driver.pushAt(43, 0, 2);
  EXPECT_TRUE(ahead->waits());
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_FALSE(ahead->waits()) << "a new process says anew how far it is";
  driver.pull(1, 2, {.progress = 41});
  const auto again = driver.pushAt(44, 0, 3);
  EXPECT_TRUE(again->waits());
  EXPECT_EQ(driver.pull(1, 2, {.progress = replication::kProgressEnd})->state().progress,
            replication::kProgressEnd);
  EXPECT_FALSE(again->waits()) << "ps/0 has said that the job is done";
}

TEST(BoundedTraining, WhoWaitsAtTheEndOfTheJobIsToldOfIt) {
  ShardDriver driver(ShardDriver::Bounded{0}, 2, 3);
  driver.pull(0);
  driver.pull(1);
  const auto asks = driver.pushAt(1, 0, 0);
  driver.pushAt(1, 1, 0);
  EXPECT_TRUE(asks->waits()) << "the last step is the other's";
  const auto last = driver.pushAt(2, 1, 1);
  EXPECT_TRUE(last->state().done);
  EXPECT_EQ(last->value(), 3);
  EXPECT_TRUE(asks->state().done);
}

TEST(BoundedTraining, AStopLetsNobodyWait) {
  ShardDriver driver(ShardDriver::Bounded{0}, 2, 100);
  driver.pull(0);
  driver.pull(1);
  const auto ahead = driver.pushAt(1, 0, 0);
  driver.shard.workers().requestStop(0, Incarnation{1});
  EXPECT_TRUE(ahead->waits()) << "the other's step is under way";
  EXPECT_TRUE(driver.pushAt(1, 1, 0)->state().done);
  EXPECT_TRUE(ahead->state().done);
}

TEST(BoundedTraining, AWaitSaysWhoIsTooFarBehind) {
  ShardDriver driver(ShardDriver::Bounded{1}, 3, 100);
  for (uint32_t rank = 0; rank < 3; ++rank) driver.pull(rank);
  driver.pushAt(1, 0, 0);
  driver.pushAt(1, 2, 0);
  const auto ahead = driver.pushAt(2, 0, 1);
  for (int i = 0; i < 61; ++i) {
    driver.clock.advance(seconds(1));
    for (uint32_t rank = 0; rank < 3; ++rank)
      driver.shard.workers().heartbeat(rank, Incarnation{1});
    if (i == 1)
      EXPECT_EQ(driver.shard.awaited().text,
                "worker/1, more than 1 step behind; a larger replication.staleness or "
                "timeouts.step_seconds gives it more time");
    driver.shard.tick();
  }
  EXPECT_EQ(ahead->error(),
            "worker/0 has waited 60 s on ps/0 for worker/1, more than 1 step behind; a larger "
            "replication.staleness or timeouts.step_seconds gives it more time");
}

TEST(BoundedTraining, AStepThatSaysNoProgressIsRefused) {
  ShardDriver driver(ShardDriver::Bounded{1}, 1, 100);
  driver.pull(0);
  for (const uint64_t progress :
       {uint64_t{0}, replication::kProgressEnd - 1, replication::kProgressEnd})
    EXPECT_EQ(driver.pushAt(progress, 0, 0)->error(),
              "worker/0 pushed to ps/0 a step without its progress, which bounded training needs");
}

TEST(BoundedTraining, WithoutABoundNothingIsCounted) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  EXPECT_EQ(driver.push(0, 0)->state().progress, 0u);
}

class BoundedReplication : public ::testing::Test {
 protected:
  std::shared_ptr<Recorded> push(uint64_t progress, uint32_t rank, uint64_t step) {
    const auto recorded = world_.driver().pushAt(progress, rank, step);
    world_.keeper.deliverAll();
    return recorded;
  }
  Replicated world_{3, 0, 1000, 1};
};

TEST_F(BoundedReplication, WhoComputesWhileThePsIsLostStillHoldsTheOthersBack) {
  for (uint32_t rank = 0; rank < 3; ++rank) world_.driver().pull(rank);
  for (uint32_t rank = 0; rank < 3; ++rank) push(1, rank, 0);
  EXPECT_FALSE(world_.loseAndRefill());
  EXPECT_FALSE(push(2, 0, 1)->waits());
  const auto ahead = push(3, 0, 2);
  EXPECT_TRUE(ahead->waits()) << "the others are still in the step before";
  push(2, 1, 1);
  EXPECT_TRUE(ahead->waits());
  EXPECT_EQ(push(2, 2, 1)->state().progress, 3u);
  EXPECT_FALSE(ahead->waits());
}

// A worker that was lost long before doesn't set the clock of its next process either.
TEST_F(BoundedReplication, WhoWasLostLongBeforeHoldsNobodyBack) {
  for (uint32_t rank = 0; rank < 3; ++rank) world_.driver().pull(rank);
  push(1, 1, 0);
  world_.driver().shard.workers().markLost(1);
  world_.driver().shard.workers().markLost(2);
  for (uint64_t step = 0; step < 100; ++step) push(step + 1, 0, step);
  EXPECT_FALSE(world_.loseAndRefill());
  world_.driver().shard.workers().join(1, Incarnation{5});
  EXPECT_EQ(world_.driver().pull(1, 5)->state().progress, 101u);
  EXPECT_FALSE(push(101, 0, 100)->waits());
}

// A process that was replaced meanwhile doesn't hold others back, and neither does one that hasn't
// yet joined this process of the ps.
TEST_F(BoundedReplication, OnlyAProcessThatHasPushedAndIsHereCountsAtOnce) {
  for (uint32_t rank = 0; rank < 3; ++rank) world_.driver().pull(rank);
  for (uint32_t rank = 0; rank < 3; ++rank) push(1, rank, 0);
  world_.joins = {0};
  EXPECT_FALSE(world_.loseAndRefill());
  world_.driver().shard.workers().join(2, Incarnation{7});
  for (uint64_t step = 1; step < 4; ++step) EXPECT_FALSE(push(step + 1, 0, step)->waits());
  // worker/1's old process joins after all, as far behind as it may be. From its first push on it
  // counts, with the clock of the slowest.
  world_.driver().shard.workers().join(1, Incarnation{1});
  EXPECT_FALSE(push(5, 0, 4)->waits());
  EXPECT_EQ(push(2, 1, 1)->state().progress, 6u);
  EXPECT_FALSE(push(6, 0, 5)->waits());
  EXPECT_TRUE(push(7, 0, 6)->waits());
}

TEST_F(BoundedReplication, AProcessThatIsHereSoonStillHoldsTheOthersBack) {
  for (uint32_t rank = 0; rank < 3; ++rank) world_.driver().pull(rank);
  for (uint32_t rank = 0; rank < 3; ++rank) push(1, rank, 0);
  world_.joins = {0, 2};
  EXPECT_FALSE(world_.loseAndRefill());
  world_.driver().shard.workers().join(1, Incarnation{1});
  push(2, 0, 1);
  push(2, 2, 1);
  EXPECT_TRUE(push(3, 0, 2)->waits()) << "worker/1 computes since before";
}

// worker/2 has done its 2 of 10 steps and waits for the others; worker/1 hangs.
TEST(BoundedTraining, OnlyACallThatWaitsForAPartHasNoDeadline) {
  ShardDriver driver(arena::EpochData{.examples = 10, .batch_size = 1}, 4, 0, 10, {}, 1);
  for (const uint32_t rank : {0, 1, 2, 3}) driver.pull(rank);
  for (const uint32_t rank : {0, 2}) driver.pushAt(1, rank, 0);
  const auto held = driver.pushAt(2, 0, 1);
  const auto done = driver.pushAt(2, 2, 1);
  const auto pass = [&driver](Duration time) {
    driver.clock.advance(time);
    for (const uint32_t rank : {0, 1, 2, 3}) driver.shard.workers().heartbeat(rank, Incarnation{1});
    driver.shard.tick();
  };
  pass(seconds(50));
  driver.pushAt(1, 3, 0);
  EXPECT_TRUE(held->waits());
  pass(seconds(11));
  EXPECT_NE(held->error().find("worker/1, more than 1 step behind"), std::string::npos)
      << held->error();
  EXPECT_TRUE(done->waits()) << "worker/3 makes headway";
}

// worker/1 returns with a part to do when worker/0 has done its own. It doesn't wait for worker/0.
TEST(BoundedTraining, WhoHasDoneItsPartOfAnEpochHoldsNobodyBack) {
  const arena::EpochData ten_batches{.examples = 10, .batch_size = 1};
  ShardDriver driver(ten_batches, 2, 0, 10, seconds(30), 0);
  driver.pull(0);
  driver.pull(1);
  driver.shard.workers().markLost(1);
  for (uint64_t step = 0; step < 4; ++step) EXPECT_FALSE(driver.pushAt(step + 1, 0, step)->waits());
  const auto done = driver.pushAt(5, 0, 4);
  EXPECT_TRUE(done->waits());
  driver.shard.workers().join(1, Incarnation{2});
  uint64_t progress = driver.pull(1, 2)->state().progress;
  for (uint64_t step = 0; step < 5; ++step, ++progress)
    ASSERT_FALSE(driver.pushAt(progress, 1, step, 2)->waits()) << step;
  EXPECT_TRUE(done->state().done);
}

}  // namespace
}  // namespace dtf::shard
