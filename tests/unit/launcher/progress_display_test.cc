#include "launcher/progress_display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

// What is said of a job that seems to stand still, on a manual clock.

namespace dtf::launcher {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class ProgressDisplayTest : public ::testing::Test {
 protected:
  void makeDisplay(uint64_t report_every_steps) {
    display_.emplace(console_, monitor_, clock_, seconds(60), report_every_steps, true);
  }
  void progressAfter(Duration time, uint64_t step) {
    clock_.advance(time);
    display_->onProgress({step, 10'000, 0.5, {}, {}});
  }
  std::string textAfter(Duration time) {
    clock_.advance(time);
    return display_->text();
  }

  ManualClock clock_;
  Console console_{STDERR_FILENO, false};
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}},
                       clock_,
                       {.start = seconds(60),
                        .finish = seconds(60),
                        .last = seconds(30),
                        .grace = seconds(2),
                        .settle = seconds(1)}};
  std::optional<ProgressDisplay> display_;
};

TEST_F(ProgressDisplayTest, AJobThatReportsByTimeStandsStillAfterThreeSecondsWithoutAStep) {
  makeDisplay(0);
  progressAfter(seconds(1), 100);
  EXPECT_THAT(textAfter(seconds(2)), Not(HasSubstr("no step")));
  EXPECT_THAT(textAfter(seconds(2)), HasSubstr("no step for 4 s"));
}

TEST_F(ProgressDisplayTest, OneThatReportsAfterManyStepsIsGivenTheTimeOfTwoReports) {
  makeDisplay(300);
  progressAfter(seconds(1), 300);
  EXPECT_THAT(textAfter(seconds(40)), Not(HasSubstr("no step"))) << "nobody knows its rate yet";
  progressAfter(seconds(0), 600);  // 300 in 40 s
  EXPECT_THAT(textAfter(seconds(79)), Not(HasSubstr("no step")));
  EXPECT_THAT(textAfter(seconds(2)), HasSubstr("no step for 81 s"));
}

TEST_F(ProgressDisplayTest, WhomItsChiefWaitsForIsNamedAtOnce) {
  makeDisplay(300);
  progressAfter(seconds(1), 300);
  display_->onWaiting("worker/1 in step 300");
  EXPECT_THAT(textAfter(seconds(4)), HasSubstr("no step for 4 s, waiting for worker/1"));
}

}  // namespace dtf::launcher
