#include "common/train/report_clock.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

TEST(ReportClock, IsDueTwiceASecond) {
  ManualClock clock;
  ReportClock report(0, 100);
  report.start(0, clock.now());
  clock.advance(std::chrono::milliseconds(499));
  EXPECT_FALSE(report.due(49, false, clock.now()));
  clock.advance(std::chrono::milliseconds(1));
  const auto rates = report.due(50, false, clock.now());
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->steps_per_second, 100);
  EXPECT_DOUBLE_EQ(rates->examples_per_second, 10000);
  EXPECT_FALSE(report.due(51, false, clock.now()));
  EXPECT_TRUE(report.due(52, true, clock.now()));  // the last
}

TEST(ReportClock, OrWheneverAMultipleIsPassed) {
  ManualClock clock;
  ReportClock report(10, 1);
  report.start(7, clock.now());
  EXPECT_FALSE(report.due(9, false, clock.now()));
  EXPECT_TRUE(report.due(12, false, clock.now()));  // async: other workers' steps in between
  EXPECT_FALSE(report.due(19, false, clock.now()));
}

TEST(ReportClock, LeavesOutASlowFirstStep) {
  ManualClock clock;
  ReportClock report(10, 1);
  report.start(0, clock.now());
  clock.advance(std::chrono::seconds(5));
  EXPECT_FALSE(report.due(1, false, clock.now()));
  report.measureFrom(1, clock.now());
  clock.advance(std::chrono::seconds(3));
  EXPECT_DOUBLE_EQ(report.due(10, false, clock.now())->steps_per_second, 3);
  clock.advance(std::chrono::seconds(5));
  EXPECT_DOUBLE_EQ(report.due(20, false, clock.now())->steps_per_second, 2);
}

TEST(ReportClock, LeavesOutWhatWasSpentOnSomethingElse) {
  ManualClock clock;
  ReportClock report(10, 1);
  report.start(0, clock.now());
  clock.advance(std::chrono::seconds(3));
  report.skip(std::chrono::seconds(2));
  EXPECT_DOUBLE_EQ(report.due(10, false, clock.now())->steps_per_second, 10);
}

}  // namespace
}  // namespace dtf::train
