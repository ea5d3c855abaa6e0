#include "common/train/divergence.h"

#include <gtest/gtest.h>

#include <limits>

namespace dtf::train {
namespace {

TEST(DivergenceWatch, AMillionTimesTheFirstLossIsTheLimit) {
  DivergenceWatch watch;
  EXPECT_FALSE(watch.diverged(2.0));
  EXPECT_FALSE(watch.diverged(2e6));
  EXPECT_TRUE(watch.diverged(2.1e6));
  EXPECT_FALSE(watch.diverged(1.0));
  EXPECT_EQ(watch.start(), 2.0) << "the start stays";
}

TEST(DivergenceWatch, WhatIsNoNumberHasDivergedFromTheFirst) {
  DivergenceWatch watch;
  EXPECT_TRUE(watch.diverged(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(watch.diverged(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(watch.start()) << "the first finite one is the start";
  EXPECT_FALSE(watch.diverged(6e19));
}

// Otherwise any growth of a loss of 0 would count as divergence.
TEST(DivergenceWatch, ASmallStartCountsAsAThousandth) {
  DivergenceWatch watch;
  EXPECT_FALSE(watch.diverged(0.0));
  EXPECT_FALSE(watch.diverged(999.0));
  EXPECT_TRUE(watch.diverged(1001.0));
}

}  // namespace
}  // namespace dtf::train
