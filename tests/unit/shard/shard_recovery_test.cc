#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {
namespace {

using namespace replication;
using std::chrono::seconds;

constexpr Incarnation kFirstLife{1}, kNextLife{2};
constexpr uint64_t kSecondEpoch = nextEpoch(kFirstEpoch, 5);

// Returns a cut of `driver`'s shard: every parameter is `value`.
RestoredShard cutOf(const ShardDriver& driver, CutPosition position, uint64_t version, float value,
                    uint64_t epoch = kSecondEpoch) {
  RestoredShard state;
  state.epoch = epoch;
  state.origin_cut = {kFirstEpoch, version};
  state.position = std::move(position);
  state.step = version;
  state.values = Buffer(driver.elements * sizeof(float));
  std::fill_n(state.values.as<float>(), driver.elements, value);
  return state;
}

// A shard in a process that was started again: declared, but without values.
class StartedAgain : public ShardDriver {
 public:
  explicit StartedAgain(uint32_t workers = 2, uint32_t aggregate = 0)
      : ShardDriver(workers, aggregate, 100, 1, 2, false, false,
                    cluster::OptimizerSpec::Kind::kGradientDescent, seconds(60)) {}
};

// Lets seconds pass one by one; the workers in `alive` send heartbeats.
void pass(ShardDriver& driver, int seconds_passed, const std::vector<uint32_t>& alive) {
  for (int i = 0; i < seconds_passed; ++i) {
    driver.clock.advance(seconds(1));
    for (const uint32_t rank : alive) driver.shard.workers().heartbeat(rank, kFirstLife);
    driver.shard.tick();
  }
}

TEST(GoingBack, WhatWasPushedBeforeHasNoEffect) {
  ShardDriver driver(2, 2, 10);
  const auto held = driver.push(0, 0, 4);
  EXPECT_TRUE(held->waits());
  EXPECT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)));
  ASSERT_FALSE(held->waits());
  EXPECT_EQ(held->state().outcome, Outcome::kWentBack);
  EXPECT_EQ(held->state().next_step, 3u);
  EXPECT_EQ(held->state().epoch, kSecondEpoch);
  EXPECT_EQ(held->value(), 7);
  // A push of the old epoch, of a step that the new epoch has, too.
  const auto late = driver.push(1, 3, 100);
  EXPECT_EQ(late->state().outcome, Outcome::kWentBack);
  driver.push(0, 3, 2, 0, 1, kSecondEpoch);
  const auto both = driver.push(1, 3, 4, 0, 1, kSecondEpoch);
  EXPECT_EQ(both->state().outcome, Outcome::kApplied);
  EXPECT_EQ(both->value(), 10) << "7 and the mean of 2 and 4";
}

TEST(GoingBack, AnAsynchronousWorkerGoesOnFromItsOwnCountInTheCut) {
  ShardDriver driver(2, 0, 100);
  driver.pull(0);
  for (uint64_t step = 0; step < 3; ++step) driver.push(0, step);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {1, 1}, 2, 7)));
  const auto old = driver.push(0, 3);
  EXPECT_EQ(old->state().outcome, Outcome::kWentBack);
  EXPECT_EQ(old->state().next_step, 1u);
  EXPECT_EQ(old->state().global_step, 2u);
  const auto again = driver.push(0, 1, 1, 0, 1, kSecondEpoch);
  EXPECT_EQ(again->state().outcome, Outcome::kApplied) << "the same step was pushed in epoch 1";
  EXPECT_EQ(again->value(), 8);
}

TEST(GoingBack, AnUpdateThatRunsIsDropped) {
  ShardDriver driver(1, 1, 10, 0, 1, true);
  const auto running = driver.push(0, 0, 4);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {0}, 0, 7)));
  EXPECT_EQ(running->state().outcome, Outcome::kWentBack);
  while (driver.runner.finish()) {
  }
  EXPECT_EQ(driver.pull(0)->value(), 7);
  EXPECT_EQ(driver.pull(0)->state().global_step, 0u);
}

TEST(GoingBack, ACutThatIsWaitedForIsCalledOff) {
  ShardDriver driver(2, 2, 10);
  std::string what = "waits";
  driver.shard.cuts().cutAt(kFirstLife, kFirstEpoch, {5}, [&](const CutAnswer& answer) {
    what = std::get<Error>(answer).message();
  });
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)));
  EXPECT_EQ(what, "ps/0 went back to earlier values before the checkpoint was taken");
  driver.shard.cuts().cutAt(kFirstLife, kFirstEpoch, {5}, [&](const CutAnswer& answer) {
    what = std::get<Error>(answer).message();
  });
  EXPECT_EQ(what, "ps/0 went back to earlier values before the checkpoint was taken")
      << "its position was chosen from the epoch before";
}

TEST(GoingBack, IsDoneOnceAndNeverToAnOlderEpoch) {
  ShardDriver driver(1, 1, 10);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)));
  driver.push(0, 3, 1, 0, 1, kSecondEpoch);
  EXPECT_FALSE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)))
      << "said again";
  EXPECT_EQ(driver.pull(0)->value(), 8);
  EXPECT_THROW(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7, kFirstEpoch)),
               Error);
  EXPECT_THROW(driver.shard.recovery().restore(
                   kNextLife, cutOf(driver, {3}, 3, 7, nextEpoch(kSecondEpoch, 0))),
               Error)
      << "not the chief's process";
  EXPECT_EQ(driver.shard.held().epoch, kSecondEpoch);
}

// A worker that has finished can't take part in one more step.
TEST(GoingBack, AJobThatWasStoppedDoesNoStepBeyondTheCut) {
  ShardDriver driver(2, 2, 10);
  driver.shard.workers().requestStop(1, kFirstLife);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)));
  EXPECT_TRUE(driver.pull(0)->state().done);
  EXPECT_EQ(driver.pull(0)->state().global_step, 3u);
  driver.shard.workers().requestStop(0, kFirstLife);
  EXPECT_TRUE(driver.pull(0)->state().done) << "said again";
}

TEST(GoingBack, LostAndFinishedWorkersAreKnownAfterwardsToo) {
  ShardDriver driver(3, 3, 10, seconds(5));
  driver.shard.workers().markLost(2);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)));
  const auto waits = driver.push(0, 3, 1, 0, 1, kSecondEpoch);
  EXPECT_TRUE(waits->waits());
  EXPECT_EQ(driver.shard.awaited().text, "the return of worker/2 in step 3");
  driver.clock.advance(seconds(6));
  driver.shard.workers().heartbeat(0, kFirstLife);
  driver.shard.tick();
  EXPECT_NE(waits->error(), "") << "it did not return in time";
}

TEST(GoingBack, TheWordNamesTheCut) {
  ShardDriver driver(1, 1, 10);
  driver.push(0, 0);
  EXPECT_EQ(driver.shard.held().epoch, kFirstEpoch);
  EXPECT_EQ(driver.shard.held().step, 1u);
  EXPECT_EQ(driver.shard.held().origin, checkpoint::EpochOrigin::kInitialValues);
  driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7));
  EXPECT_EQ(driver.shard.held().step, 3u);
  EXPECT_EQ(driver.shard.held().origin, checkpoint::EpochOrigin::kCheckpoint);
  EXPECT_EQ(driver.shard.held().origin_cut, (checkpoint::CutName{kFirstEpoch, 3}));
  EXPECT_TRUE(driver.shard.status().saved) << "its values are those of a checkpoint";
}

// ---- a ps that keeps its values while another one is away

// ps/0 of two, with two workers; each step needs the gradients of both.
class BesideAnother : public ShardDriver {
 public:
  explicit BesideAnother(uint32_t aggregate)
      : ShardDriver(2, aggregate, 100, 0, 2, false, true,
                    cluster::OptimizerSpec::Kind::kGradientDescent, seconds(90)) {}
};

// worker/1 waits for ps/1, which has 90 s to return, and can't push what worker/0 waits for.
TEST(BesideAnother, AStepWaitsForAWorkerThatWaitsForAPs) {
  BesideAnother driver(2);
  const auto waits = driver.push(0, 0);
  pass(driver, 149, {0, 1});
  EXPECT_TRUE(waits->waits());
  pass(driver, 2, {0, 1});
  EXPECT_EQ(waits->error(), "worker/0 has waited 150 s in step 0 on ps/0 for worker/1");
}

TEST(BesideAnother, AnAsynchronousWorkerWaitsForTheLastStepsAsLong) {
  ShardDriver driver(2, 0, 1, 0, 2, false, true, cluster::OptimizerSpec::Kind::kGradientDescent,
                     seconds(90));
  driver.pull(1);
  const auto waits = driver.pull(0);
  pass(driver, 149, {0, 1});
  EXPECT_TRUE(waits->waits());
  pass(driver, 2, {0, 1});
  EXPECT_FALSE(waits->waits());
}

TEST(BesideAnother, NoStepEndsWhileTheCutToGoBackToIsRead) {
  for (const uint32_t aggregate : {0u, 2u}) {
    SCOPED_TRACE(aggregate);
    ShardDriver driver(2, aggregate, 1, 0, 2, false, true,
                       cluster::OptimizerSpec::Kind::kGradientDescent, seconds(90));
    driver.pull(1);
    const auto waits = aggregate > 0 ? driver.push(0, 0) : driver.pull(0);
    pass(driver, 100, {0, 1});
    driver.shard.recovery().expectRestore(kFirstLife);
    EXPECT_TRUE(driver.shard.awaited().is_return) << "so that the workers' own deadlines wait, too";
    EXPECT_EQ(driver.shard.awaited().text, "worker/0 to take ps/0 back to saved values");
    pass(driver, 1000, {0, 1});
    EXPECT_TRUE(waits->waits());
    driver.shard.workers().join(0, kNextLife);
    EXPECT_FALSE(driver.shard.awaited().is_return) << "the next chief decides anew";
  }
}

TEST(BesideAnother, TheTimeToReadTheCutEnds) {
  BesideAnother driver(2);
  driver.shard.recovery().expectRestore(kFirstLife);
  pass(driver, 30 * 60 - 1, {0, 1});
  EXPECT_TRUE(driver.shard.awaited().is_return);
  pass(driver, 1, {0, 1});
  EXPECT_FALSE(driver.shard.awaited().is_return);
  EXPECT_THROW(driver.shard.recovery().expectRestore(kNextLife), Error)
      << "not the chief's process";
}

// Another ps may have lost its values, and a worker that trains here can't know that. A killed
// worker isn't missed at once either.
TEST(BesideAnother, AChiefThatWasStartedAgainMayEndTheJobOnceItIsTheJobsChief) {
  BesideAnother driver(0);
  driver.pull(1);
  driver.push(1, 0);
  driver.shard.workers().join(0, kNextLife);
  EXPECT_THROW(driver.shard.workers().checkMayEndJob(0, kNextLife), Error);
  arena::ModelDeclaration other = driver.model;
  ++other.steps;
  EXPECT_THROW(driver.shard.workers().declare(0, kNextLife, other), Error);
  EXPECT_THROW(driver.shard.workers().checkMayEndJob(0, kNextLife), Error)
      << "it has the wrong file";
  driver.shard.workers().declare(0, kNextLife, driver.model);
  EXPECT_NO_THROW(driver.shard.workers().checkMayEndJob(0, kNextLife));
}

// ---- a process that was started again

TEST(StartedAgain, PullsAndPushesWaitForTheValues) {
  StartedAgain driver;
  const auto pull = driver.pull(0);
  const auto push = driver.push(1, 5);
  EXPECT_TRUE(pull->waits());
  EXPECT_TRUE(push->waits());
  EXPECT_EQ(driver.shard.awaited().text, "worker/0 to bring the values of ps/1 back");
  EXPECT_TRUE(driver.shard.awaited().is_return) << "so that no step's deadline ends the wait";
  EXPECT_EQ(driver.shard.status().callers_waiting, 2u);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {4, 4}, 8, 7)));
  EXPECT_EQ(pull->state().outcome, Outcome::kApplied);
  EXPECT_EQ(pull->state().next_step, 4u);
  EXPECT_EQ(push->state().outcome, Outcome::kWentBack);
  EXPECT_EQ(push->state().epoch, kSecondEpoch);
  EXPECT_EQ(driver.shard.awaited().text, "");
}

TEST(StartedAgain, APushOfTheEpochThatIsBroughtBackIsApplied) {
  StartedAgain driver;
  const auto push = driver.push(1, 4, 2, 0, 1, kSecondEpoch);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {4, 4}, 8, 7)));
  EXPECT_EQ(push->state().outcome, Outcome::kApplied);
  EXPECT_EQ(push->value(), 9);
}

TEST(StartedAgain, APullMayWaitForALaterEpoch) {
  ShardDriver driver(1, 1, 10, seconds(60));
  auto recorded = std::make_shared<Recorded>();
  driver.shard.pull(
      0, kFirstLife, {},
      [recorded](const PushAnswer& answer) {
        recorded->answer = std::make_shared<PushAnswer>(answer);
      },
      kSecondEpoch);
  EXPECT_TRUE(recorded->waits());
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {3}, 3, 7)));
  EXPECT_EQ(recorded->state().epoch, kSecondEpoch);
}

TEST(StartedAgain, AChiefThatIsLostIsWaitedForAsAnyWorker) {
  StartedAgain driver;
  const auto pull = driver.pull(1);
  driver.shard.workers().markLost(0);
  pass(driver, 59, {1});
  EXPECT_TRUE(pull->waits());
  pass(driver, 1, {1});
  EXPECT_EQ(pull->error(),
            "worker/1 has waited 60 s for worker/0 to bring the values of ps/1 back");
}

// The chief may be reading a large checkpoint from a slow disk.
TEST(StartedAgain, AChiefThatLivesIsGivenTime) {
  StartedAgain driver;
  const auto pull = driver.pull(1);
  const auto push = driver.push(0, 5);
  pass(driver, 600, {0, 1});
  EXPECT_TRUE(pull->waits());
  EXPECT_TRUE(push->waits());
  driver.shard.workers().markLost(0);
  pass(driver, 59, {1});
  EXPECT_TRUE(pull->waits());
  pass(driver, 2, {1});
  EXPECT_FALSE(pull->waits());
}

TEST(StartedAgain, NobodyWaitsForEver) {
  StartedAgain driver;
  const auto pull = driver.pull(1);
  pass(driver, 30 * 60 - 1, {0, 1});
  EXPECT_TRUE(pull->waits());
  pass(driver, 1, {0, 1});
  EXPECT_FALSE(pull->waits());
}

// The push was sent a second time on another connection, and arrives late.
TEST(StartedAgain, ARepeatOfAnEarlierPushDoesNotEndTheWaitOfALaterCall) {
  StartedAgain driver;
  const auto last = driver.push(0, 5);
  const auto repeat = driver.push(0, 4);
  EXPECT_NE(repeat->error().find("gave way"), std::string::npos);
  const auto pull = driver.pull(1);
  EXPECT_NE(driver.push(1, 5)->error().find("gave way"), std::string::npos);
  EXPECT_TRUE(last->waits());
  EXPECT_TRUE(pull->waits());
  EXPECT_TRUE(driver.push(0, 3, 1, 0, 1, kSecondEpoch)->waits()) << "of a later epoch";
  EXPECT_NE(last->error().find("gave way"), std::string::npos);
}

TEST(StartedAgain, ANewerProcessOfTheWorkerFencesTheWait) {
  StartedAgain driver;
  const auto old = driver.push(1, 5);
  driver.shard.workers().join(1, kNextLife);
  EXPECT_EQ(old->error(), "fenced: worker/1 was replaced by a newer process; end this one");
  const auto asked = driver.pull(0);
  const auto again = driver.pull(0);
  EXPECT_NE(asked->error().find("gave way"), std::string::npos);
  EXPECT_TRUE(again->waits());
  driver.shard.workers().markLost(0);
  EXPECT_NE(again->error().find("fenced: worker/0 was lost"), std::string::npos);
}

TEST(StartedAgain, WhereNobodyIsWaitedForCallsFailAtOnce) {
  ShardDriver driver(1, 1, 10, 0, 1, false, false);
  EXPECT_NE(driver.pull(0)->error(), "");
  EXPECT_NE(driver.push(0, 0)->error(), "");
}

std::shared_ptr<Recorded> pullEpoch(ShardDriver& driver, uint32_t rank, uint64_t epoch) {
  auto recorded = std::make_shared<Recorded>();
  driver.shard.pull(
      rank, kFirstLife, {},
      [recorded](const PushAnswer& answer) {
        recorded->answer = std::make_shared<PushAnswer>(answer);
      },
      epoch);
  return recorded;
}

// While a pull waits for its epoch, no deadline runs.
TEST(StartedAgain, APullOfAnEpochThatCanNotComeIsRefused) {
  constexpr uint64_t kFar = nextEpoch(uint64_t{5000} << kEpochChiefBits, 0);
  ShardDriver driver(2, 2, 10, seconds(60));
  const auto far = pullEpoch(driver, 1, kFar);
  EXPECT_EQ(far->error(),
            "worker/1 asked ps/0 for parameters of epoch 5001, but the job is on epoch 1");
  EXPECT_FALSE(driver.shard.awaited().is_return);
  StartedAgain empty;
  const auto early = pullEpoch(empty, 1, kFar);
  EXPECT_TRUE(early->waits()) << "what the job's epoch is it doesn't know";
  ASSERT_TRUE(empty.shard.recovery().restore(kFirstLife, cutOf(empty, {4, 4}, 8, 7)));
  EXPECT_EQ(early->error(),
            "worker/1 asked ps/1 for parameters of epoch 5001, but the job is on epoch 2");
}

// ---- moving averages

TEST(StartedAgain, APullOfMovingAveragesWaitsForTheValues) {
  StartedAgain driver;
  const auto averages = driver.pullAverages(1);
  EXPECT_TRUE(averages->waits());
  EXPECT_TRUE(driver.shard.awaited().is_return);
  ASSERT_TRUE(driver.shard.recovery().restore(kFirstLife, cutOf(driver, {4, 4}, 8, 7)));
  EXPECT_NE(averages->error().find("keeps no moving averages"), std::string::npos) << "its answer";
}

// A shard with an update that is held, and a call that waits for its end.
class AveragesOfAHeldUpdate : public ShardDriver {
 public:
  AveragesOfAHeldUpdate() : ShardDriver(2, 0, 100, 0, 1, true) {
    pull(0);
    push(0, 0);
    averages = pullAverages(1);
  }
  std::shared_ptr<Recorded> averages;
};

TEST(MovingAverages, WhoeverWaitsForTheUpdateIsAnsweredAtTheLatestWhenTheStepWouldBe) {
  AveragesOfAHeldUpdate driver;
  EXPECT_EQ(driver.shard.status().callers_waiting, 2u);
  pass(driver, 59, {0, 1});
  EXPECT_TRUE(driver.averages->waits());
  pass(driver, 1, {0, 1});
  EXPECT_EQ(
      driver.averages->error(),
      "worker/1 has waited 60 s on ps/0 for the update that runs, to get the values after it");
  while (driver.runner.finish()) {
  }
}

TEST(MovingAverages, AWorkerThatIsGoneIsFencedThere) {
  AveragesOfAHeldUpdate replaced;
  replaced.shard.workers().join(1, kNextLife);
  EXPECT_NE(replaced.averages->error().find("fenced: "), std::string::npos);
  AveragesOfAHeldUpdate lost;
  lost.shard.workers().markLost(1);
  EXPECT_NE(lost.averages->error().find("fenced: "), std::string::npos);
  AveragesOfAHeldUpdate asked_again;
  const auto again = asked_again.pullAverages(1);
  EXPECT_NE(asked_again.averages->error().find("gave way"), std::string::npos);
  asked_again.shard.failAll(Error(ErrorCode::kUnavailable, "the end"));
  EXPECT_EQ(again->error(), "the end");
}

}  // namespace
}  // namespace dtf::shard
