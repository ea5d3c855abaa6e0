#include "launcher/progress_display.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>

// The display of a job that seems to stand still, on a manual clock.

namespace dtf::launcher {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

std::array<int, 2> makePipe() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
  return ends;
}

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

  // Returns the lines since the last call.
  std::string linesAfter(Duration time) {
    clock_.advance(time);
    display_->refresh();
    console_.pump();
    std::string text(4096, '\0');
    const ssize_t bytes = ::read(pipe_[0], text.data(), text.size());
    text.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    return text;
  }
  ~ProgressDisplayTest() override {
    for (const int end : pipe_) ::close(end);
  }

  std::array<int, 2> pipe_ = makePipe();
  ManualClock clock_;
  Console console_{pipe_[1], false};
  TaskMonitor monitor_{{{JobKind::kPs, 0}, {JobKind::kWorker, 0}},
                       clock_,
                       {.start = seconds(60),
                        .finish = seconds(60),
                        .last = seconds(30),
                        .grace = seconds(2),
                        .settle = seconds(1),
                        .restarts = {.max = 3}}};
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

TEST_F(ProgressDisplayTest, ATaskThatStartsAgainIsAwaitedFromItsOwnStart) {
  makeDisplay(0);
  for (const size_t task : {0, 1}) {
    monitor_.onSpawned(task);
    monitor_.onReady(task);
  }
  EXPECT_EQ(linesAfter(seconds(40)), "");
  monitor_.onExit(1, ExitStatus{.signal = SIGKILL});
  clock_.advance(seconds(1));
  monitor_.onTime();
  ASSERT_EQ(monitor_.takeStarts(), std::vector<size_t>{1});
  monitor_.onSpawned(1);
  EXPECT_EQ(linesAfter(seconds(0)), "");
  EXPECT_EQ(linesAfter(seconds(4)), "");
  EXPECT_THAT(linesAfter(seconds(2)),
              HasSubstr("waiting for worker/0 to become ready (6 s of 60 s)"));
}

// Its tasks have ended, so none of them is up: "worker 0/1" would read as a loss.
TEST_F(ProgressDisplayTest, TheLastLineOfAJobCountsNoTasks) {
  makeDisplay(0);
  for (const size_t task : {0, 1}) {
    monitor_.onSpawned(task);
    monitor_.onReady(task);
  }
  progressAfter(seconds(1), 9000);
  EXPECT_THAT(linesAfter(seconds(0)),
              HasSubstr("step 9000/10000 90% | loss 0.5 | ps 1/1 worker 1/1"));
  progressAfter(seconds(1), 10'000);
  for (const size_t task : {1, 0}) monitor_.onExit(task, ExitStatus{});
  display_->finish();
  EXPECT_EQ(linesAfter(seconds(0)), "step 10000/10000 100% | loss 0.5\n");
}

TEST_F(ProgressDisplayTest, WhomItsChiefWaitsForIsNamedAtOnce) {
  makeDisplay(300);
  progressAfter(seconds(1), 300);
  display_->onWaiting("worker/1 in step 300");
  EXPECT_THAT(textAfter(seconds(4)), HasSubstr("no step for 4 s, waiting for worker/1"));
}

}  // namespace dtf::launcher
