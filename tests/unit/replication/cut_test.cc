#include "common/replication/cut.h"

#include <gtest/gtest.h>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::replication {
namespace {

using namespace shard;
using std::chrono::seconds;

constexpr Incarnation kOne{1};

// Returns "captured", "too late", "waits", or the error.
std::shared_ptr<std::string> cutAt(ShardDriver& driver, CutPosition position) {
  auto what = std::make_shared<std::string>("waits");
  driver.shard.cuts().cutAt(kOne, driver.shard.held().epoch, std::move(position),
                            [what](const CutAnswer& answer) {
                              const Error* error = std::get_if<Error>(&answer);
                              if (error != nullptr) {
                                *what = error->message();
                                return;
                              }
                              const CutResult& result = std::get<CutResult>(answer);
                              *what = result.outcome == CutOutcome::kTooLate
                                          ? "too late"
                                          : "captured version " + std::to_string(result.version);
                            });
  return what;
}

const Capture& captured(ShardDriver& driver, const CutPosition& position) {
  return *driver.shard.cuts().captured(kOne, position).capture;
}

float capturedValue(ShardDriver& driver, const CutPosition& position) {
  return captured(driver, position).parameters->data()[0];
}

std::string savingError(ShardDriver& driver, Incarnation chief, const CutPosition& position) {
  try {
    driver.shard.cuts().captured(chief, position);
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

// ---- sync

TEST(SyncCut, CapturesTheStepItWasToldAndNoOther) {
  ShardDriver driver(2, 2, 10);
  const auto cut = cutAt(driver, {1});
  EXPECT_EQ(*cut, "waits");
  driver.push(0, 0, 2);
  driver.push(1, 0, 4);
  EXPECT_EQ(*cut, "captured version 1");
  driver.push(0, 1, 50);
  driver.push(1, 1, 50);
  EXPECT_EQ(captured(driver, {1}).version, 1u);
  EXPECT_EQ(capturedValue(driver, {1}), 3) << "the capture stays as it was";
}

TEST(SyncCut, TheStepItIsAtIsCapturedAtOnceAndAPassedOneIsTooLate) {
  ShardDriver driver(2, 2, 10);
  driver.push(0, 0);
  driver.push(1, 0);
  EXPECT_EQ(*cutAt(driver, {0}), "too late");
  EXPECT_EQ(*cutAt(driver, {1}), "captured version 1");
}

TEST(SyncCut, AStepThatIsBeingAppliedIsPassed) {
  ShardDriver driver(2, 2, 10, 0, 1, true);
  driver.push(0, 0);
  driver.push(1, 0);
  EXPECT_EQ(driver.shard.cuts().position(kOne, false), CutPosition{1});
  EXPECT_EQ(*cutAt(driver, {0}), "too late");
  const auto cut = cutAt(driver, {1});
  EXPECT_EQ(*cut, "waits");
  driver.runner.finish();
  EXPECT_EQ(*cut, "captured version 1");
}

TEST(SyncCut, AStepBeyondTheJobIsRefusedAndALateOneTimesOutByName) {
  ShardDriver driver(2, 2, 10);
  EXPECT_NE(cutAt(driver, {11})->find("job of 10 steps"), std::string::npos);
  const auto cut = cutAt(driver, {1});
  driver.push(0, 0);
  driver.clock.advance(seconds(61));
  driver.shard.workers().heartbeat(0, kOne);
  driver.shard.workers().heartbeat(1, kOne);
  driver.shard.tick();
  EXPECT_NE(cut->find("waited 60 s for step 1"), std::string::npos) << *cut;
  EXPECT_NE(cut->find("worker/1"), std::string::npos) << *cut;
}

// The job can't reach that step any more, so the chief must not wait for it until the deadline.
TEST(SyncCut, AStepThatALostWorkerKeepsFromCompletingIsGivenUp) {
  ShardDriver driver(2, 2, 10);
  const auto armed = cutAt(driver, {1});
  EXPECT_EQ(*armed, "waits");
  driver.shard.workers().markLost(1);
  EXPECT_NE(armed->find("no checkpoint at step 1: worker/1 was lost"), std::string::npos) << *armed;
  const auto second = cutAt(driver, {1});
  EXPECT_NE(second->find("worker/1 was lost"), std::string::npos) << "not armed again: " << *second;
  EXPECT_EQ(*cutAt(driver, {0}), "captured version 0") << "where it is, it can be saved";
}

TEST(SyncCut, ALossDuringTheUpdateCallsOffTheCutBeyondIt) {
  ShardDriver driver(2, 2, 10, 0, 1, true);
  driver.push(0, 0);
  driver.push(1, 0);
  const auto cut = cutAt(driver, {2});
  driver.shard.workers().markLost(1);
  EXPECT_EQ(*cut, "waits");
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_NE(cut->find("no checkpoint at step 2: worker/1 was lost"), std::string::npos) << *cut;
}

TEST(SyncCut, OnlyTheLiveChiefMayAsk) {
  ShardDriver driver(2, 2, 10);
  driver.shard.workers().join(0, Incarnation{2});
  EXPECT_NE(cutAt(driver, {0})->find("fenced"), std::string::npos);
}

TEST(SyncCut, AStopEndsTheJobAfterTheStepUnderWay) {
  ShardDriver driver(2, 2, 10);
  const auto first = driver.push(0, 0);
  driver.shard.workers().requestStop(1, kOne);
  const auto second = driver.push(1, 0);
  EXPECT_TRUE(first->state().done);
  EXPECT_TRUE(second->state().done);
  EXPECT_EQ(first->state().global_step, 1u);
  EXPECT_EQ(*cutAt(driver, {1}), "captured version 1");
}

// A chief that missed its cut arms a later one; after the stop no worker reaches that.
TEST(SyncCut, AStopCallsOffACutBehindTheLastStep) {
  ShardDriver driver(2, 2, 10);
  driver.pull(0);
  const auto armed_before = cutAt(driver, {3});
  EXPECT_EQ(*armed_before, "waits");
  driver.shard.workers().requestStop(0, kOne);
  EXPECT_NE(armed_before->find("the job was stopped at step 1"), std::string::npos)
      << *armed_before;
  const auto armed_after = cutAt(driver, {2});
  EXPECT_NE(armed_after->find("the job was stopped at step 1"), std::string::npos) << *armed_after;
  EXPECT_EQ(*cutAt(driver, {1}), "waits") << "the step under way is still done";
}

// A ps receives a stop before the workers have declared the model.
TEST(SyncCut, AStopOfAJobThatIsNotDeclaredYetIsKept) {
  const ShardDriver declared(1, 1, 10);
  const ManualClock clock;
  optimizer::InlineUpdateRunner runner;
  shard::Shard shard({.workers = 1}, clock, runner, nullptr);
  shard.workers().join(0, kOne);
  shard.workers().requestStop(0, kOne);
  shard.workers().declare(0, kOne, declared.model);
  const std::vector<float> values(declared.elements);
  shard.initialise(0, kOne, values);
  EXPECT_TRUE(shard.status().coordinator.done) << "nobody has been sent to a step";
}

// A job that had ended early is started again: its chief finds that out, and nobody has pulled yet.
TEST(SyncCut, AStopBeforeTheFirstPullTrainsNothing) {
  ShardDriver driver(2, 2, 10);
  driver.shard.workers().requestStop(0, kOne);
  EXPECT_TRUE(driver.pull(1)->state().done);
  EXPECT_EQ(driver.pull(0)->state().global_step, 0u);
  ShardDriver pulled(2, 2, 10);
  EXPECT_FALSE(pulled.pull(1)->state().done);
  pulled.shard.workers().requestStop(0, kOne);
  EXPECT_FALSE(pulled.pull(0)->state().done) << "worker/1 computes step 0";
}

// ---- captures that may be saved

TEST(Captured, OnlyTheLiveChiefGetsItAndOnlyOfThePlaceThatItNames) {
  ShardDriver driver(2, 2, 10);
  EXPECT_NE(savingError(driver, kOne, {0}).find("it has captured nothing"), std::string::npos);
  EXPECT_EQ(*cutAt(driver, {0}), "captured version 0");
  // A chief that has slept since then wakes up beside its successor, which has cut elsewhere.
  driver.shard.workers().join(0, Incarnation{2});
  EXPECT_NE(savingError(driver, kOne, {0}).find("fenced"), std::string::npos);
  EXPECT_NE(
      savingError(driver, Incarnation{2}, {1}).find("can't save step 1: it has captured step 0"),
      std::string::npos);
  EXPECT_EQ(driver.shard.cuts().captured(Incarnation{2}, {0}).capture->position, CutPosition{0})
      << "a refusal leaves it where it is";
  driver.shard.cuts().releaseCapture();
  EXPECT_NE(savingError(driver, Incarnation{2}, {0}).find("nothing"), std::string::npos);
}

// ---- async

TEST(AsyncCut, AHoldParksNewPushesUntilTheCutIsTaken) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  driver.push(0, 0, 1);
  EXPECT_EQ(driver.shard.cuts().position(kOne, true), (CutPosition{1, 0}));
  const auto parked = driver.push(0, 1, 10);
  EXPECT_TRUE(parked->waits());
  // Another ps has worker 1's first push already, so it belongs before the cut.
  const auto cut = cutAt(driver, {1, 1});
  EXPECT_EQ(*cut, "waits");
  const auto before = driver.push(1, 0, 2);
  EXPECT_EQ(*cut, "captured version 2");
  EXPECT_EQ(capturedValue(driver, {1, 1}), 3);
  EXPECT_EQ(captured(driver, {1, 1}).position, (CutPosition{1, 1}));
  EXPECT_FALSE(before->waits());
  EXPECT_EQ(parked->value(), 13) << "applied right after the cut";
}

TEST(AsyncCut, APushThatWasParkedButBelongsBeforeTheCutIsApplied) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  driver.shard.cuts().position(kOne, true);
  const auto parked = driver.push(1, 0, 2);
  EXPECT_TRUE(parked->waits());
  EXPECT_EQ(*cutAt(driver, {0, 1}), "captured version 1");
  EXPECT_EQ(capturedValue(driver, {0, 1}), 2);
  EXPECT_EQ(parked->value(), 2);
}

TEST(AsyncCut, ALostWorkersMissingPushIsNotWaitedFor) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  driver.shard.cuts().position(kOne, true);
  const auto cut = cutAt(driver, {0, 1});
  EXPECT_EQ(*cut, "waits");
  driver.shard.workers().markLost(1);
  EXPECT_EQ(*cut, "captured version 0") << "this ps never had it";
}

TEST(AsyncCut, AHoldThatNobodyEndsEndsByItself) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.shard.cuts().position(kOne, true);
  const auto parked = driver.push(0, 0, 1);
  EXPECT_TRUE(parked->waits());
  driver.clock.advance(kHoldMax + seconds(1));
  driver.shard.workers().heartbeat(0, kOne);
  driver.shard.tick();
  EXPECT_EQ(parked->value(), 1);
}

// Otherwise the cut would never expire, and a push beyond its position would be captured for it.
TEST(AsyncCut, TheEndOfAHoldCallsOffTheCutThatWaits) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  driver.shard.cuts().position(kOne, true);
  const auto cut = cutAt(driver, {0, 1});
  EXPECT_EQ(*cut, "waits");
  const auto parked = driver.push(0, 0, 1);
  EXPECT_TRUE(parked->waits());
  driver.shard.cuts().releaseHold(kOne);
  EXPECT_NE(cut->find("called off"), std::string::npos) << *cut;
  EXPECT_EQ(parked->value(), 1);
  driver.push(1, 0, 2);
  EXPECT_NE(savingError(driver, kOne, {0, 1}).find("it has captured nothing"), std::string::npos);
}

TEST(AsyncCut, AParkedPushOfAReplacedProcessIsFenced) {
  ShardDriver driver(2, 0, 100);
  driver.pull(1);
  driver.shard.cuts().position(kOne, true);
  const auto parked = driver.push(1, 0, 1);
  driver.shard.workers().join(1, Incarnation{2});
  EXPECT_NE(parked->error().find("fenced"), std::string::npos);
  driver.shard.cuts().releaseHold(kOne);
  EXPECT_EQ(driver.shard.status().coordinator.gradients_applied, 0u);
}

TEST(AsyncCut, AStopGrantsNothingMore) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  driver.pull(1);
  driver.shard.workers().requestStop(0, kOne);
  const auto first = driver.push(0, 0);
  EXPECT_TRUE(first->waits()) << "the last step is with worker 1";
  const auto second = driver.push(1, 0);
  EXPECT_TRUE(first->state().done);
  EXPECT_TRUE(second->state().done);
  EXPECT_EQ(second->state().global_step, 2u);
}

// ---- restore

shard::RestoredShard restoredOf(const shard::CapturedShard& captured) {
  shard::RestoredShard restored;
  const Capture& capture = *captured.capture;
  restored.position = capture.position;
  restored.step = capture.version;
  restored.clock = capture.clock;
  restored.values = Buffer(capture.parameters->elements() * sizeof(float));
  std::copy_n(capture.parameters->data(), capture.parameters->elements(),
              restored.values.as<float>());
  return restored;
}

TEST(Restore, TrainingGoesOnFromTheCut) {
  ShardDriver before(2, 0, 100);
  before.pull(0);
  before.push(0, 0, 1);
  before.push(0, 1, 2);
  before.shard.cuts().position(kOne, true);
  ASSERT_EQ(*cutAt(before, {2, 0}), "captured version 2");

  ManualClock clock;
  optimizer::InlineUpdateRunner runner;
  shard::Shard after(shard::ShardOptions{.workers = 2}, clock, runner, nullptr);
  after.workers().join(0, kOne);
  after.workers().declare(0, kOne, before.model);
  std::string waiting = "waits";
  after.waitInitialised(0, kOne, seconds(60), [&](const WaitAnswer&) { waiting = "passed"; });
  EXPECT_TRUE(
      after.recovery().restore(kOne, restoredOf(before.shard.cuts().captured(kOne, {2, 0}))));
  EXPECT_EQ(waiting, "passed");
  EXPECT_FALSE(
      after.recovery().restore(kOne, restoredOf(before.shard.cuts().captured(kOne, {2, 0}))))
      << "said again, it has been done";
  after.pull(0, kOne, {}, [](const PushAnswer& answer) {
    const PushReply& reply = std::get<PushReply>(answer);
    EXPECT_EQ(reply.state.global_step, 2u);
    EXPECT_EQ(reply.state.next_step, 2u) << "the batch after those that are in";
    EXPECT_EQ(reply.parameters->data()[0], 3);
  });
}

// A job of fewer steps than its checkpoint has: it is done at once, and can be saved as it is.
TEST(Restore, BeyondTheStepsOfTheJobIsAPlaceToo) {
  ShardDriver long_job(1, 1, 10);
  for (uint64_t step = 0; step < 3; ++step) long_job.push(0, step);
  ASSERT_EQ(*cutAt(long_job, {3}), "captured version 3");
  ShardDriver job(1, 1, 2, 0, 1, false, false);
  ASSERT_TRUE(
      job.shard.recovery().restore(kOne, restoredOf(long_job.shard.cuts().captured(kOne, {3}))));
  EXPECT_TRUE(job.pull(0)->state().done);
  EXPECT_EQ(*cutAt(job, {2}), "too late");
  EXPECT_EQ(*cutAt(job, {3}), "captured version 3");
  EXPECT_NE(cutAt(job, {4})->find("job of 2 steps"), std::string::npos);
}

// ---- a large shard is copied where updates run

// Adagrad's slot is 0.1 and the squares of the gradients applied.
float capturedSlot(ShardDriver& driver, const CutPosition& position) {
  return captured(driver, position).slots.at(0).as<float>()[driver.elements - 1];
}

TEST(LargeCut, HoldsUpUpdatesAndNothingElse) {
  ShardDriver driver(2, 2, 10, 0, 1, true, true, cluster::OptimizerSpec::Kind::kAdagrad);
  const auto cut = cutAt(driver, {0});
  EXPECT_EQ(*cut, "waits") << "the copy runs elsewhere";
  driver.shard.workers().heartbeat(1, kOne);
  const auto a = driver.push(0, 0, 2);
  const auto b = driver.push(1, 0, 2);
  EXPECT_TRUE(a->waits()) << "the step is complete, but must not change what is being copied";
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_EQ(*cut, "captured version 0");
  EXPECT_FLOAT_EQ(capturedSlot(driver, {0}), 0.1f);
  EXPECT_TRUE(a->waits()) << "now it is applied";
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_FALSE(a->waits());
  EXPECT_EQ(b->state().next_step, 1u);
  EXPECT_FALSE(driver.runner.finish());
  cutAt(driver, {1});
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_FLOAT_EQ(capturedSlot(driver, {1}), 4.1f);
}

TEST(LargeCut, ASecondOneOfTheSamePlaceWaitsForTheFirst) {
  ShardDriver driver(2, 0, 10, 0, 1, true, true, cluster::OptimizerSpec::Kind::kAdagrad);
  const auto first = cutAt(driver, {0, 0});
  const auto second = cutAt(driver, {0, 0});
  driver.pull(0);
  const auto push = driver.push(0, 0, 2);
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_EQ(*first, "captured version 0");
  EXPECT_EQ(*second, "waits");
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_EQ(*second, "captured version 0");
  EXPECT_FLOAT_EQ(capturedSlot(driver, {0, 0}), 0.1f);
  ASSERT_TRUE(driver.runner.finish());
  EXPECT_FALSE(push->waits());
}

}  // namespace
}  // namespace dtf::replication
