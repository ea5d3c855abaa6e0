#include "daemons/progress_history.h"

#include <gtest/gtest.h>

namespace dtf::daemons {
namespace {

TEST(ProgressHistory, KeepsEveryPointWhileTheyFit) {
  ProgressHistory history;
  for (size_t i = 0; i < ProgressHistory::kPointsMax; ++i)
    history.offer({.seconds = static_cast<double>(i)});
  ASSERT_EQ(history.points().size(), ProgressHistory::kPointsMax);
  EXPECT_EQ(history.points()[7].seconds, 7);
}

TEST(ProgressHistory, ThenPointsAtTwiceTheDistanceFromTheBeginningOn) {
  ProgressHistory history;
  for (size_t i = 0; i < 100'000; ++i) {
    history.offer({.seconds = static_cast<double>(i)});
    ASSERT_LE(history.points().size(), ProgressHistory::kPointsMax + 1);
  }
  const std::vector<ProgressPoint> points = history.points();
  ASSERT_GE(points.size(), ProgressHistory::kPointsMax / 2);
  const double distance = points[1].seconds - points[0].seconds;
  EXPECT_EQ(points[0].seconds, 0);
  for (size_t i = 1; i + 1 < points.size(); ++i)
    ASSERT_EQ(points[i].seconds - points[i - 1].seconds, distance) << i;
  EXPECT_EQ(points.back().seconds, 99'999) << "the newest is there";
}

}  // namespace
}  // namespace dtf::daemons
