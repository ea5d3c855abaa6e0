#include "common/replication/async_coordinator.h"

#include <gtest/gtest.h>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;
using std::chrono::seconds;

TEST(AsyncCoordinator, SaysWithWhomTheLastStepsAre) {
  ShardDriver driver(2, 0, 1);
  driver.pull(0);
  const auto other = driver.pull(1);
  EXPECT_TRUE(other->waits());
  driver.clock.advance(std::chrono::milliseconds(1100));
  EXPECT_EQ(driver.shard.awaited().text, "the last steps, which were granted to worker/0");
}

TEST(AsyncCoordinator, AppliesEachGradientOnArrival) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  EXPECT_EQ(driver.push(0, 0, 1)->value(), 1);
  const auto second = driver.push(1, 0, 2);
  EXPECT_EQ(second->value(), 3);
  EXPECT_EQ(second->state().global_step, 2u);
  EXPECT_EQ(second->state().next_step, 1u) << "its own count";
  EXPECT_EQ(second->state().staleness, 1u);
}

TEST(AsyncCoordinator, GrantsExactlyTheStepsOfTheJob) {
  ShardDriver driver(2, 0, 3);
  driver.pull(0);
  driver.pull(1);
  EXPECT_FALSE(driver.push(0, 0)->state().done);
  const auto asks = driver.push(0, 1);
  EXPECT_TRUE(asks->waits()) << "the last step is with worker 1";
  const auto last = driver.push(1, 0);
  EXPECT_TRUE(last->state().done);
  EXPECT_TRUE(asks->state().done);
  EXPECT_EQ(asks->state().global_step, 3u);
  const auto more = driver.push(0, 2);
  EXPECT_EQ(more->state().outcome, Outcome::kStale) << "a push after the end has no effect";
  EXPECT_EQ(more->value(), 3);
}

TEST(AsyncCoordinator, ALostWorkersGrantGoesToOneWhoWaits) {
  ShardDriver driver(2, 0, 2);
  driver.pull(0);
  driver.pull(1);
  const auto asks = driver.push(0, 0);
  EXPECT_TRUE(asks->waits());
  driver.shard.workers().markLost(1);
  EXPECT_FALSE(asks->state().done);
  EXPECT_TRUE(driver.push(0, 1)->state().done);
  EXPECT_EQ(driver.shard.status().coordinator.global_step, 2u);
}

TEST(AsyncCoordinator, ARestartedWorkerHasItsPredecessorsGrant) {
  ShardDriver driver(1, 0, 2);
  driver.pull(0);
  driver.push(0, 0);
  driver.shard.workers().join(0, Incarnation{2});
  EXPECT_EQ(driver.pull(0, 2)->state().next_step, 1u);
  EXPECT_TRUE(driver.push(0, 1, 1, 0, 2)->state().done);
}

TEST(AsyncCoordinator, ARepeatedPushIsAnsweredAlikeAndAppliedOnce) {
  ShardDriver driver(1, 0, 10);
  driver.pull(0);
  const auto first = driver.push(0, 0);
  const auto again = driver.push(0, 0);
  EXPECT_EQ(again->state().outcome, Outcome::kApplied);
  EXPECT_EQ(again->state().global_step, first->state().global_step);
  EXPECT_EQ(again->state().next_step, first->state().next_step);
  EXPECT_EQ(again->value(), 1);
  EXPECT_EQ(driver.shard.status().coordinator.gradients_repeated, 1u);
  driver.push(0, 1);
  EXPECT_EQ(driver.push(0, 0)->state().outcome, Outcome::kApplied);  // a late echo
}

// The connection may break amid the first reply; the repeated one brings the same parameters.
TEST(AsyncCoordinator, AnAnswerThatIsRepeatedSaysWhichParametersComeWithIt) {
  ShardDriver driver(2, 0, 10);
  driver.pull(0);
  driver.pull(1);
  driver.push(0, 0);
  driver.push(1, 0);
  const auto again = driver.push(0, 0);
  EXPECT_EQ(again->value(), 2);
  EXPECT_EQ(again->state().global_step, 2u);
  EXPECT_EQ(again->state().next_step, 1u);
  EXPECT_EQ(driver.push(0, 1)->state().staleness, 0u) << "it has seen both";
}

TEST(AsyncCoordinator, ARepeatedPushTakesOverTheWaitWhileTheUpdateRuns) {
  ShardDriver driver(1, 0, 10, 0, 1, true);
  driver.pull(0);
  const auto first = driver.push(0, 0);
  const auto again = driver.push(0, 0);
  EXPECT_NE(first->error().find("gave way"), std::string::npos);
  EXPECT_TRUE(again->waits());
  EXPECT_TRUE(driver.runner.finish());
  EXPECT_EQ(again->value(), 1);
  EXPECT_FALSE(driver.runner.finish()) << "applied once";
}

TEST(AsyncCoordinator, GradientsQueueWhileAnUpdateRuns) {
  ShardDriver driver(3, 0, 10, 0, 1, true);
  for (uint32_t rank = 0; rank < 3; ++rank) driver.pull(rank);
  std::vector<std::shared_ptr<Recorded>> pushes;
  for (uint32_t rank = 0; rank < 3; ++rank) pushes.push_back(driver.push(rank, 0));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(pushes[i]->waits());
    EXPECT_TRUE(driver.runner.finish());
    EXPECT_EQ(pushes[i]->value(), static_cast<float>(i + 1));
    EXPECT_EQ(pushes[i]->state().staleness, static_cast<uint64_t>(i));
  }
}

TEST(AsyncCoordinator, RefusesWhatBreaksTheRules) {
  ShardDriver driver(2, 0, 10);
  EXPECT_NE(driver.push(0, 0)->error().find("which was not granted"), std::string::npos);
  driver.pull(0);
  EXPECT_NE(driver.push(0, 1)->error().find("step 1, but its next step is 0"), std::string::npos);
  EXPECT_NE(driver.push(0, 0, 1, 1)->error().find("batch 1"), std::string::npos);
  const auto short_push = driver.pushSized(0, 0, 1, 0, 1, 15);
  EXPECT_EQ(short_push->error(),
            "worker/0 pushed to ps/0 a gradient of 15 elements for a shard of 16");
  EXPECT_NE(driver.push(2, 0)->error().find("worker/2 is not part of this job"), std::string::npos);
  EXPECT_EQ(driver.push(0, 0)->value(), 1) << "none of these had an effect";
}

TEST(AsyncCoordinator, OtherPsApplyWhatTheyAreSentWithoutGrants) {
  ShardDriver driver(1, 0, 2, 1, 2);
  EXPECT_EQ(driver.push(0, 0)->value(), 1);
  EXPECT_EQ(driver.push(0, 1)->value(), 2);
  EXPECT_FALSE(driver.push(0, 2)->state().done) << "only ps/0 counts";
}

TEST(AsyncCoordinator, AWaitForTheLastStepsNamesWhoHasThem) {
  ShardDriver driver(2, 0, 2);
  driver.pull(0);
  driver.pull(1);
  const auto asks = driver.push(0, 0);
  for (int i = 0; i < 61; ++i) {
    driver.clock.advance(seconds(1));
    driver.shard.workers().heartbeat(0, Incarnation{1});
    driver.shard.workers().heartbeat(1, Incarnation{1});
    driver.shard.tick();
  }
  EXPECT_EQ(asks->error(),
            "worker/0 has waited 60 s on ps/0 for the last steps, which were granted to worker/1");
}

TEST(StalenessHistogram, CountsWhatIsLargeInTheLastBucket) {
  StalenessHistogram histogram;
  for (const uint64_t staleness : {0u, 63u, 64u, 1000u}) histogram.add(staleness);
  EXPECT_EQ(histogram.counts[0], 1u);
  EXPECT_EQ(histogram.counts[63], 1u);
  EXPECT_EQ(histogram.counts[64], 2u);
  EXPECT_EQ(histogram.max, 1000u);
  EXPECT_EQ(histogram.sum, 1127u);
}

}  // namespace
}  // namespace dtf::replication
