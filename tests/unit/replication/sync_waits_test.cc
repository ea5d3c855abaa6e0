// Which gradients, and which workers' return, a synchronous step waits for, and how long.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;
using std::chrono::seconds;

TEST(SyncWaits, SaysWhomAWorkerWaitsForAfterASecond) {
  ShardDriver driver(3, 3, 5);
  driver.push(0, 0, 1);
  driver.push(2, 0, 1);
  EXPECT_EQ(driver.shard.awaited().text, "");
  driver.clock.advance(std::chrono::milliseconds(1100));
  EXPECT_EQ(driver.shard.awaited().text, "worker/1 in step 0");
  driver.push(1, 0, 1);
  EXPECT_EQ(driver.shard.awaited().text, "");
}

// Between two steps, for ten minutes; then the worker counts as slow, like any other.
TEST(SyncWaits, AWorkerThatEvaluatesIsWaitedForWithoutADeadline) {
  ShardDriver driver(2, 2, 5);
  const auto waits = driver.push(0, 0);
  const auto pass = [&](int seconds_passed, bool evaluates) {
    for (int i = 0; i < seconds_passed; ++i) {
      driver.clock.advance(seconds(1));
      driver.shard.workers().heartbeat(0, Incarnation{1});
      driver.shard.workers().heartbeat(1, Incarnation{1}, evaluates);
      driver.shard.tick();
    }
  };
  pass(30, false);
  pass(590, true);
  EXPECT_TRUE(waits->waits());
  EXPECT_TRUE(driver.shard.awaited().is_return);
  EXPECT_EQ(driver.shard.awaited().text, "worker/1 to finish its evaluation");
  pass(50, false);
  EXPECT_TRUE(waits->waits()) << "its time begins when that is over";
  EXPECT_FALSE(driver.shard.awaited().is_return);
  pass(590, true);
  EXPECT_TRUE(waits->waits());
  pass(100, true);
  EXPECT_NE(waits->error().find("has waited 60 s in step 0 on ps/0 for worker/1"),
            std::string::npos)
      << waits->error();
}

TEST(SyncWaits, ARestartedJobWaitsForTheLostWorkersReturn) {
  ShardDriver driver(2, 2, 5);
  driver.push(0, 0);
  driver.shard.workers().markLost(1);
  driver.shard.workers().join(0, Incarnation{2});
  const auto waits = driver.push(0, 0, 1, 0, 2);
  EXPECT_TRUE(waits->waits());
  driver.shard.workers().join(1, Incarnation{2});
  driver.push(1, 0, 1, 0, 2);
  EXPECT_EQ(waits->value(), 1);
}

TEST(SyncWaits, AStepThatNeedsALostWorkerWaitsForItsReturn) {
  ShardDriver driver(2, 2, 5, seconds(30));
  const auto waits = driver.push(0, 0, 1);
  driver.shard.workers().markLost(1);
  EXPECT_TRUE(driver.shard.awaited().is_return);
  EXPECT_EQ(driver.shard.awaited().text, "the return of worker/1 in step 0");
  for (int i = 0; i < 29; ++i) {
    driver.clock.advance(seconds(1));
    driver.shard.workers().heartbeat(0, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_TRUE(waits->waits());
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_TRUE(driver.shard.awaited().is_return) << "its data are to be read";
  driver.pull(1, 2);
  EXPECT_FALSE(driver.shard.awaited().is_return);
  driver.push(1, 0, 3, 0, 2);
  EXPECT_EQ(waits->value(), 2);
}

TEST(SyncWaits, ALostWorkerThatDoesNotReturnInTimeIsGivenUp) {
  ShardDriver driver(2, 2, 5, seconds(30));
  const auto waits = driver.push(0, 0, 1);
  driver.shard.workers().markLost(1);
  for (int i = 0; i < 31; ++i) {
    driver.clock.advance(seconds(1));
    driver.shard.workers().heartbeat(0, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_EQ(
      waits->error(),
      "worker/1 was lost (its process ended), and did not return within 30 s, in step 0; sync "
      "training needs all 2 workers");
  EXPECT_FALSE(driver.shard.awaited().is_return);
}

// A step's deadline is for workers that are there: it begins anew when a lost one is back.
TEST(SyncWaits, TheStepsDeadlineBeginsWhenTheLostWorkerIsBack) {
  ShardDriver driver(2, 2, 5, seconds(600));
  const auto waits = driver.push(0, 0, 1);
  driver.shard.workers().markLost(1);
  const auto passSeconds = [&](int count, uint64_t incarnation) {
    for (int i = 0; i < count; ++i) {
      driver.clock.advance(seconds(1));
      driver.shard.workers().heartbeat(0, Incarnation{1});
      if (incarnation > 1) driver.shard.workers().heartbeat(1, Incarnation{incarnation});
      driver.shard.tick();
    }
  };
  passSeconds(300, 1);
  driver.shard.workers().join(1, Incarnation{2});
  passSeconds(100, 2);
  driver.pull(1, 2);
  passSeconds(59, 2);
  EXPECT_TRUE(waits->waits());
  passSeconds(2, 2);
  EXPECT_NE(waits->error().find("has waited 60 s in step 0"), std::string::npos) << waits->error();
}

TEST(SyncWaits, NobodyWaitsForTheReturnOfABackupWorker) {
  ShardDriver driver(3, 2, 5, seconds(30));
  driver.push(0, 0);
  driver.shard.workers().markLost(2);
  EXPECT_FALSE(driver.shard.awaited().is_return) << "two are enough";
  driver.shard.workers().markLost(1);
  EXPECT_TRUE(driver.shard.awaited().is_return);
}

TEST(SyncWaits, NobodyWaitsForTheReturnOfAWorkerWhoseGradientIsThere) {
  ShardDriver driver(2, 2, 5, seconds(30));
  driver.push(1, 0, 3);
  driver.shard.workers().markLost(1);
  EXPECT_FALSE(driver.shard.awaited().is_return);
  EXPECT_EQ(driver.push(0, 0, 1)->value(), 2);
  EXPECT_TRUE(driver.shard.awaited().is_return) << "the next step needs it";
}

TEST(SyncWaits, ACheckpointWaitsWithItsStepForTheLostWorkersReturn) {
  ShardDriver driver(2, 2, 5, seconds(600));
  driver.push(0, 0, 1);
  std::optional<CutAnswer> cut;
  driver.shard.cuts().cutAt(Incarnation{1}, kFirstEpoch, {1},
                            [&](CutAnswer answer) { cut = std::move(answer); });
  driver.shard.workers().markLost(1);
  for (int i = 0; i < 100; ++i) {
    driver.clock.advance(seconds(1));
    driver.shard.workers().heartbeat(0, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_FALSE(cut.has_value());
  driver.shard.workers().join(1, Incarnation{2});
  driver.push(1, 0, 3, 0, 2);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(std::get<CutResult>(*cut).outcome, CutOutcome::kCaptured);
}

// A member of a host never pushes; its leader can't without it.
TEST(SyncWaits, WithSumsByHostALostMemberIsAwaitedAndGivenUpLikeItsLeader) {
  ShardDriver driver(ShardDriver::Hosts{{0, 0, 2, 2}}, 5, seconds(30));
  const auto waits = driver.push(0, 0, 1);
  driver.shard.workers().markLost(3);
  EXPECT_TRUE(driver.shard.awaited().is_return);
  EXPECT_NE(driver.shard.awaited().text.find("the return of worker/3"), std::string::npos)
      << driver.shard.awaited().text;
  driver.shard.workers().markLost(1);
  EXPECT_EQ(driver.shard.awaited().text.find("worker/1"), std::string::npos)
      << "its gradient is here, in the mean of worker/0";
  for (int i = 0; i < 31; ++i) {
    driver.clock.advance(seconds(1));
    for (const uint32_t rank : {0U, 2U}) driver.shard.workers().heartbeat(rank, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_NE(waits->error().find("worker/3"), std::string::npos) << waits->error();
}

TEST(SyncWaits, SaysWhomItHasWaitedFor) {
  ShardDriver driver(3, 3, 5);
  const auto waits = driver.push(1, 0);
  for (int i = 0; i < 61; ++i) {
    driver.clock.advance(seconds(1));
    for (uint32_t rank = 0; rank < 3; ++rank)
      driver.shard.workers().heartbeat(rank, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_EQ(waits->error(), "worker/1 has waited 60 s in step 0 on ps/0 for worker/0, worker/2");
}

}  // namespace
}  // namespace dtf::replication
