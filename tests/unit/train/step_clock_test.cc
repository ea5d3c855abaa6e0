#include "common/train/step_clock.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

using replication::Phase;
using replication::PhaseTimes;
using std::chrono::milliseconds;

class StepClockTest : public ::testing::Test {
 protected:
  void spend(int time) { clock_.advance(milliseconds(time)); }

  // A step of 10 ms of data, 20 of computing, 5 in which gradients travel, and `waited`.
  void step(int waited) {
    {
      const StepClock::Section computing(steps_, Phase::kCompute);
      {
        const StepClock::Section reading(steps_, Phase::kData);
        spend(10);
      }
      spend(20);
    }
    steps_.enter(Phase::kSend);
    spend(5 + waited);
    steps_.enter(Phase::kCompute);
    steps_.noteWaited(milliseconds(waited));
    steps_.endBatch(true);
  }

  ManualClock clock_;
  StepClock steps_{clock_};
};

PhaseTimes timesOf(int data, int compute, int send, int wait, int evaluate = 0) {
  PhaseTimes times;
  times.each = {milliseconds(data), milliseconds(compute), milliseconds(send), milliseconds(wait),
                milliseconds(evaluate)};
  return times;
}

TEST_F(StepClockTest, ThePhasesOfAStepAreItsLength) {
  steps_.start();
  step(7);
  EXPECT_EQ(steps_.last(), timesOf(10, 20, 5, 7));
  EXPECT_EQ(steps_.last().own(), milliseconds(35));
  EXPECT_DOUBLE_EQ(steps_.batches().sum, 0.042);
}

TEST_F(StepClockTest, AnEvaluationIsAPhaseAndNoPartOfABatch) {
  steps_.start();
  {
    const StepClock::Section evaluating(steps_, Phase::kEvaluate);
    spend(500);
  }
  spend(1);  // a report
  step(0);
  EXPECT_EQ(steps_.last(), timesOf(10, 21, 5, 0, 500));
  EXPECT_DOUBLE_EQ(steps_.batches().sum, 0.036);
}

TEST_F(StepClockTest, AStepHasTheTimesOfAllItsBatches) {
  steps_.start();
  spend(20);
  steps_.endBatch(false);
  EXPECT_EQ(steps_.last(), PhaseTimes());
  spend(30);
  steps_.endBatch(true);
  EXPECT_EQ(steps_.last(), timesOf(0, 50, 0, 0));
  EXPECT_EQ(steps_.batches().sum, 0.05) << "two batches";
}

TEST_F(StepClockTest, WaitingIsAtMostTheTimeInWhichItSent) {
  steps_.start();
  steps_.enter(Phase::kSend);
  spend(5);
  steps_.enter(Phase::kCompute);
  steps_.noteWaited(milliseconds(800));  // of an exchange that began beside the computation
  steps_.endBatch(true);
  EXPECT_EQ(steps_.last(), timesOf(0, 0, 0, 5));
}

TEST_F(StepClockTest, AStepThatBeginsAnewCountsNowhere) {
  steps_.start();
  spend(400);
  steps_.start();
  step(0);
  EXPECT_EQ(steps_.total(), timesOf(10, 20, 5, 0));
}

TEST_F(StepClockTest, TheMeanIsOfTheStepsSinceTheLastOne) {
  steps_.start();
  EXPECT_EQ(steps_.takeMean(), PhaseTimes());
  step(0);
  step(20);
  EXPECT_EQ(steps_.takeMean(), timesOf(10, 20, 5, 10));
  step(40);
  EXPECT_EQ(steps_.takeMean(), timesOf(10, 20, 5, 40));
  EXPECT_EQ(steps_.takeMean(), timesOf(10, 20, 5, 40)) << "no step has ended since";
  EXPECT_EQ(steps_.total(), timesOf(30, 60, 15, 60));
}

}  // namespace
}  // namespace dtf::train
