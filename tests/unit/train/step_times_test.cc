#include "common/train/step_times.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

using std::chrono::microseconds;

TEST(StepTimes, ABoundBelongsToItsBucket) {
  StepTimes times;
  for (const int length : {0, 25, 26, 50, 51}) times.add(microseconds(length));
  EXPECT_EQ(times.counts[0], 2u);
  EXPECT_EQ(times.counts[1], 2u);
  EXPECT_EQ(times.counts[2], 1u);
  EXPECT_DOUBLE_EQ(times.sum, 152e-6);
}

TEST(StepTimes, WhatIsLongerThanAllIsInTheLast) {
  StepTimes times;
  times.add(std::chrono::seconds(25));
  times.add(std::chrono::hours(1));
  EXPECT_EQ(times.counts[StepTimes::kAtMost.size() - 1], 1u);
  EXPECT_EQ(times.counts.back(), 1u);
}

}  // namespace
}  // namespace dtf::train
