#include "launcher/progress.h"

#include <gtest/gtest.h>

namespace dtf::launcher {

TEST(Progress, LineSaysAllThatIsKnown) {
  const ProgressView view{{4210, 10000, 0.21349, 81234.5, 0.9213}, {2, 2}, {3, 4}, 112.0, ""};
  EXPECT_EQ(
      progressLine(view),
      "step 4210/10000 42% | loss 0.213 | accuracy 0.9213 | 81234 examples/s | ps 2/2 worker 3/4 "
      "| 1:52 left");
}

TEST(Progress, ANarrowLineKeepsTheStepAndTheTimeLeft) {
  ProgressView view{{4210, 10000, 0.21349, 81234.5, 0.9213}, {2, 2}, {4, 4}, 112.0, ""};
  EXPECT_EQ(progressLine(view, 81),
            "step 4210/10000 42% | loss 0.213 | accuracy 0.9213 | 81234 examples/s | 1:52 left");
  EXPECT_EQ(progressLine(view, 70),
            "step 4210/10000 42% | loss 0.213 | accuracy 0.9213 | 1:52 left");
  EXPECT_EQ(progressLine(view, 50), "step 4210/10000 42% | accuracy 0.9213 | 1:52 left");
  EXPECT_EQ(progressLine(view, 40), "step 4210/10000 42% | 1:52 left");
  EXPECT_EQ(progressLine(view, 10), "step 4210/");
  view.worker.up = 3;
  EXPECT_EQ(progressLine(view, 90),
            "step 4210/10000 42% | loss 0.213 | accuracy 0.9213 | ps 2/2 worker 3/4 | 1:52 left")
      << "a worker that is missing is more than the examples";
}

TEST(Progress, TheWorkerThatTheOthersWaitForIsNamed) {
  ProgressView view{{40, 100, 0.5, 80, {}}, {1, 1}, {2, 2}, {}, ""};
  view.notice.straggler = {"worker/1\033[2J", "data", 41};
  EXPECT_EQ(progressLine(view, 60).find('\033'), std::string::npos) << "another process's words";
  view.notice.straggler = {"worker/1", "data", 41};
  EXPECT_EQ(progressLine(view),
            "step 40/100 40% | waits for worker/1 (data) | loss 0.5 | 80 examples/s | ps 1/1 "
            "worker 2/2");
  EXPECT_EQ(progressLine(view, 45), "step 40/100 40% | waits for worker/1 (data)");
}

TEST(Progress, WhomTheJobWaitsForComesAfterTheStep) {
  const ProgressView view{
      {40, 100, 0.5, {}, {}}, {1, 1}, {2, 2}, {}, "no step for 4 s: suspended: worker/1"};
  EXPECT_EQ(progressLine(view, 79),
            "step 40/100 40% | no step for 4 s: suspended: worker/1 | loss 0.5");
}

TEST(Progress, LineLeavesOutWhatIsNotKnown) {
  const ProgressView view{{7, 0, {}, {}, {}}, {0, 0}, {1, 1}, {}, ""};
  EXPECT_EQ(progressLine(view), "step 7 | worker 1/1");
  EXPECT_EQ(progressLine({{7, 0, {}, {}, {}}, {}, {}, {}, ""}), "step 7");
}

TEST(Progress, HundredPercentIsTheLastStepOnly) {
  EXPECT_EQ(progressLine({{9999, 10000, {}, {}, {}}, {1, 1}, {1, 1}, {}, ""}),
            "step 9999/10000 99% | ps 1/1 worker 1/1");
  EXPECT_EQ(progressLine({{10000, 10000, {}, {}, {}}, {1, 1}, {1, 1}, {}, ""}),
            "step 10000/10000 100% | ps 1/1 worker 1/1");
}

TEST(Progress, StartingLine) {
  EXPECT_EQ(waitingLine("starting", {1, 2}, {0, 4}, 3.2), "starting | ps 1/2 worker 0/4 | 3 s");
}

TEST(Progress, Durations) {
  EXPECT_EQ(durationText(0), "0:00");
  EXPECT_EQ(durationText(7.4), "0:07");
  EXPECT_EQ(durationText(112), "1:52");
  EXPECT_EQ(durationText(3 * 3600 + 4 * 60 + 5), "3:04:05");
  EXPECT_EQ(durationText(-1), "0:00");
}

TEST(Progress, CountsKeepThreeDigitsBelowAThousand) {
  EXPECT_EQ(countText(0.21349), "0.213");
  EXPECT_EQ(countText(81.25), "81.2");
  EXPECT_EQ(countText(999), "999");
  EXPECT_EQ(countText(81234.4), "81234");
}

TEST(ProgressMeter, TheLastProgressShowsTheLastAccuracy) {
  ProgressMeter meter;
  meter.setAccuracy(0.5);
  EXPECT_FALSE(meter.last());
  meter.add({100, 1000, {}, {}, 0.5}, ManualClock().now());
  meter.setAccuracy(0.75);
  EXPECT_EQ(meter.last()->eval_accuracy, 0.75);
  EXPECT_EQ(meter.last()->step, 100u);
}

TEST(ProgressMeter, RateAndTimeLeftComeFromTheGlobalSteps) {
  ProgressMeter meter;
  ManualClock clock;
  EXPECT_FALSE(meter.secondsLeft());
  meter.add({100, 1000, {}, {}, {}}, clock.now());
  EXPECT_FALSE(meter.stepsPerSecond()) << "one point is no rate";
  clock.advance(std::chrono::seconds(2));
  meter.add({300, 1000, {}, {}, {}}, clock.now());
  EXPECT_DOUBLE_EQ(*meter.stepsPerSecond(), 100);
  EXPECT_DOUBLE_EQ(*meter.secondsLeft(), 7);
}

}  // namespace dtf::launcher
