#include "common/replication/sync_coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/random.h"
#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;
using std::chrono::seconds;

TEST(SyncCoordinator, AnswersNobodyBeforeAllContributed) {
  ShardDriver driver(2, 2, 5);
  const auto a = driver.push(0, 0, 1);
  EXPECT_TRUE(a->waits());
  const auto b = driver.push(1, 0, 3);
  EXPECT_EQ(a->value(), 2) << "the mean";
  EXPECT_EQ(b->state().global_step, 1u);
  EXPECT_EQ(b->state().next_step, 1u);
}

// worker/0 brings the mean of two workers, worker/2 the mean of three.
TEST(SyncCoordinator, WithSumsByHostAStepWaitsForLeadersAndWeighsTheirMeans) {
  ShardDriver driver(ShardDriver::Hosts{{0, 0, 2, 2, 2}}, 5);
  EXPECT_EQ(driver.push(1, 0)->error(),
            "worker/1 pushed to ps/0 batch 0, counted from 0, of its 0 per step");
  const auto first = driver.push(0, 0, 10);
  EXPECT_TRUE(first->waits());
  EXPECT_EQ(driver.push(2, 0, 5)->value(), 7) << "(2 * 10 + 3 * 5) / 5";
  EXPECT_EQ(first->state().next_step, 1u);
  const auto member = driver.pull(3);
  EXPECT_EQ(member->state().next_step, 1u);
  EXPECT_EQ(member->state().next_batch, 0u);
  EXPECT_EQ(driver.pull(3, 1, {.step = 0})->state().next_batch, 0u);
}

// 14 examples in batches of 4: worker/3 has 2 of them.
TEST(SyncCoordinator, WithSumsByHostAShortStepWeighsByTheExamplesOfEachHost) {
  ShardDriver driver(ShardDriver::Hosts{{0, 0, 2, 2}}, 5, {}, {.examples = 14, .batch_size = 4});
  driver.push(0, 0, 7);
  EXPECT_FLOAT_EQ(driver.push(2, 0, 14)->value(), (7.0F * 8 + 14 * 6) / 14);
}

TEST(SyncCoordinator, DropsGradientOlderThanCurrentStep) {
  ShardDriver driver(3, 2, 5);
  driver.push(0, 0);
  driver.push(2, 0);
  const auto late = driver.push(1, 0, 100);
  EXPECT_EQ(late->state().outcome, Outcome::kStale);
  EXPECT_EQ(late->state().next_step, 1u);
  EXPECT_EQ(late->value(), 1) << "with fresh parameters, and without effect";
  EXPECT_EQ(driver.shard.status().coordinator.gradients_stale, 1u);
}

TEST(SyncCoordinator, QueuesAllBatchesButTheLast) {
  ShardDriver driver(2, 3, 5);
  const auto first = driver.push(0, 0, 1, 0);
  EXPECT_EQ(first->state().outcome, Outcome::kQueued);
  EXPECT_EQ(first->state().next_batch, 1u);
  EXPECT_EQ(std::get<PushReply>(*first->answer).parameters, nullptr);
  const auto last = driver.push(0, 0, 2, 1);
  EXPECT_TRUE(last->waits());
  driver.push(1, 0, 6, 0);
  EXPECT_EQ(last->value(), 3);
}

TEST(SyncCoordinator, ARepeatedPushIsAnsweredAlikeAndAppliedOnce) {
  ShardDriver driver(2, 4, 5);
  driver.push(0, 0, 1, 0);
  EXPECT_EQ(driver.push(0, 0, 1, 0)->state().outcome, Outcome::kQueued);
  const auto last = driver.push(0, 0, 1, 1);
  const auto again = driver.push(0, 0, 1, 1);
  EXPECT_NE(last->error().find("gave way"), std::string::npos);
  driver.push(1, 0, 1, 0);
  driver.push(1, 0, 1, 1);
  EXPECT_EQ(again->value(), 1);
  EXPECT_EQ(driver.push(0, 0, 1, 0)->state().outcome, Outcome::kQueued);
  const auto after = driver.push(0, 0, 1, 1);
  EXPECT_EQ(after->state().outcome, Outcome::kApplied);
  EXPECT_EQ(after->state().next_step, 1u);
  EXPECT_EQ(after->value(), 1);
  EXPECT_EQ(driver.shard.status().coordinator.gradients_applied, 4u);
  EXPECT_EQ(driver.shard.status().coordinator.gradients_repeated, 4u);
}

TEST(SyncCoordinator, APushSaidAgainStepsLaterIsToldWhatBecameOfIt) {
  ShardDriver driver(2, 1, 100);
  driver.push(0, 0);  // step 0 is made of worker/0's gradient
  driver.push(1, 1);  // step 1 of worker/1's
  EXPECT_EQ(driver.push(0, 0)->state().outcome, Outcome::kApplied);
  EXPECT_EQ(driver.push(1, 0)->state().outcome, Outcome::kStale);
  EXPECT_EQ(driver.push(0, 1)->state().outcome, Outcome::kStale);
  for (uint64_t step = 2; step < 64; ++step) driver.push(1, step);
  EXPECT_EQ(driver.push(0, 0)->state().outcome, Outcome::kApplied);
  driver.push(1, 64);
  EXPECT_EQ(driver.push(0, 0)->state().outcome, Outcome::kStale);  // too long ago
  EXPECT_EQ(driver.push(1, 64)->state().outcome, Outcome::kApplied);
  EXPECT_EQ(driver.shard.status().coordinator.gradients_applied, 65u);
}

TEST(SyncCoordinator, RefusesWhatBreaksTheRules) {
  ShardDriver driver(2, 3, 5);
  EXPECT_EQ(driver.push(0, 1)->error(),
            "worker/0 pushed to ps/0 step 1 while the job is at step 0");
  EXPECT_EQ(driver.push(1, 0, 1, 1)->error(),
            "worker/1 pushed to ps/0 batch 1, counted from 0, of its 1 per step");
  EXPECT_NE(driver.pushSized(0, 0, 1, 0, 1, 32)->error().find("32 elements for a shard of 16"),
            std::string::npos);
  EXPECT_NE(driver.push(7, 0)->error().find("worker/7 is not part"), std::string::npos);
}

TEST(SyncCoordinator, EveryOrderOfArrivalGivesTheSameBits) {
  // Amounts for which the order of summation changes the sum.
  const std::vector<float> amounts = {1e8f, 1.5f, -1e8f, 0.1f, 3e7f, -7.25f};
  Random random(1);
  std::optional<float> expected;
  for (int trial = 0; trial < 3000; ++trial) {
    ShardDriver driver(3, 6, 1);
    std::vector<uint32_t> order = {0, 1, 2, 3, 4, 5};
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const uint32_t i : order) driver.push(i / 2, 0, amounts[i], i % 2);
    const float value = driver.pull(0)->value();
    if (!expected) expected = value;
    ASSERT_EQ(value, *expected) << "trial " << trial;
  }
}

TEST(SyncCoordinator, ALossIsToldToThoseWhoWait) {
  ShardDriver driver(2, 2, 200);
  for (uint64_t step = 0; step < 118; ++step) {
    driver.push(0, step);
    driver.push(1, step);
  }
  const auto waits = driver.push(0, 118);
  for (int i = 0; i < 11; ++i) {
    driver.clock.advance(seconds(1));
    driver.shard.workers().heartbeat(0, Incarnation{1});
  }
  driver.shard.tick();
  EXPECT_EQ(waits->error(),
            "worker/1 was lost (no heartbeat for 10 s) in step 118; sync training needs all 2 "
            "workers");
  EXPECT_NE(driver.push(0, 118)->error(), "") << "and at once to those who come later";
}

TEST(SyncCoordinator, ALostWorkersContributionStillCounts) {
  ShardDriver driver(2, 2, 5);
  const auto dead = driver.push(1, 0, 3);
  driver.shard.workers().markLost(1);
  EXPECT_NE(dead->error(), "");
  EXPECT_EQ(driver.push(0, 0, 1)->value(), 2) << "nothing of this step is missing";
  EXPECT_NE(driver.push(0, 1)->error().find("in step 1"), std::string::npos);
}

TEST(SyncCoordinator, WithBackupsTheOthersGoOnWhileEnoughAreLeft) {
  ShardDriver driver(3, 2, 5);
  const auto waits = driver.push(0, 0);
  driver.shard.workers().markLost(2);
  EXPECT_TRUE(waits->waits());
  driver.push(1, 0);
  EXPECT_EQ(waits->state().global_step, 1u);
  const auto next = driver.push(0, 1);
  driver.shard.workers().markLost(1);
  EXPECT_EQ(next->error(),
            "worker/1 was lost (its process ended); worker/2 was lost (its process ended) in step "
            "1; sync training needs 2 of its 3 workers");
}

TEST(SyncCoordinator, AReplacedProcessIsFencedButItsGradientStays) {
  ShardDriver driver(2, 2, 5);
  const auto old = driver.push(0, 0, 1);
  driver.shard.workers().join(0, Incarnation{2});
  EXPECT_EQ(old->error(), "fenced: worker/0 was replaced by a newer process; end this one");
  EXPECT_NE(driver.push(0, 0, 9)->error().find("fenced: worker/0 was replaced"), std::string::npos);
  driver.push(1, 0, 1);
  const auto pulled = driver.pull(0, 2);
  EXPECT_EQ(pulled->state().global_step, 1u);
  EXPECT_EQ(pulled->value(), 1);
}

TEST(SyncCoordinator, KeepsTheStepBeforeUntilTheNextIsPushed) {
  ShardDriver driver(2, 2, 5);
  driver.push(0, 0, 1);
  driver.push(1, 0, 1);
  const auto before = driver.pull(1, 1, {.step = 0});
  EXPECT_EQ(before->state().next_step, 0u);
  EXPECT_EQ(before->value(), 0);
  driver.push(0, 1);
  const auto now = driver.pull(1, 1, {.step = 0});
  EXPECT_EQ(now->state().next_step, 1u);
  EXPECT_EQ(now->value(), 1);
}

TEST(SyncCoordinator, AGradientThatComesDuringTheUpdateIsAnsweredWithFreshParameters) {
  ShardDriver driver(3, 2, 5, 0, 1, true);
  const auto a = driver.push(0, 0);
  driver.push(1, 0);
  const auto late = driver.push(2, 0, 100);
  EXPECT_TRUE(a->waits());
  EXPECT_TRUE(late->waits());
  EXPECT_TRUE(driver.runner.finish());
  EXPECT_EQ(a->value(), 1);
  EXPECT_EQ(late->state().outcome, Outcome::kStale);
  EXPECT_EQ(late->value(), 1);
}

TEST(SyncCoordinator, IsDoneAfterItsSteps) {
  ShardDriver driver(1, 1, 2);
  EXPECT_FALSE(driver.push(0, 0)->state().done);
  EXPECT_TRUE(driver.push(0, 1)->state().done);
  const auto more = driver.push(0, 2);
  EXPECT_EQ(more->state().outcome, Outcome::kStale);
  EXPECT_TRUE(more->state().done);
  EXPECT_EQ(more->value(), 2);
}

TEST(SyncCoordinator, ACallbackMayPushTheNextStepAtOnce) {
  ShardDriver driver(1, 1, 1000);
  std::vector<float> gradient(driver.elements, -1.0f);
  std::function<void(uint64_t)> go = [&](uint64_t step) {
    driver.shard.push({.rank = 0,
                       .incarnation = Incarnation{1},
                       .step = step,
                       .batch = 0,
                       .sequence = step,
                       .gradient = gradient,
                       .owner = nullptr},
                      [&go](const PushAnswer& answer) {
                        const StepState& state = std::get<PushReply>(answer).state;
                        if (!state.done) go(state.next_step);
                      });
  };
  go(0);
  EXPECT_EQ(driver.pull(0)->value(), 1000);
}

}  // namespace
}  // namespace dtf::replication
