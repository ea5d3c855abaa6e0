#include "common/ps/set_decider.h"

#include <gtest/gtest.h>

namespace dtf::ps {
namespace {

using Ranks = std::vector<uint32_t>;

TEST(SetDecider, TakesTheFirstRanksThatAreOnAllPs) {
  SetDecider decider(2, 3, 2);
  EXPECT_EQ(decider.received(0, 2), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(0, 0), std::nullopt) << "on one ps only, all of them";
  EXPECT_EQ(decider.received(1, 2), std::nullopt);
  EXPECT_EQ(decider.received(1, 0), (Ranks{0, 2}));
  EXPECT_EQ(decider.received(1, 1), std::nullopt) << "too late";
}

TEST(SetDecider, CountsARepeatedReportOnce) {
  SetDecider decider(2, 2, 1);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(1, 1), (Ranks{1}));
}

TEST(SetDecider, BeginsEachStepAnew) {
  SetDecider decider(1, 3, 2);
  decider.received(0, 0);
  EXPECT_EQ(decider.received(0, 1), (Ranks{0, 1}));
  decider.nextStep();
  EXPECT_EQ(decider.received(0, 2), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), (Ranks{1, 2}));
}

TEST(SetDecider, ForgetsWhatAPsHadReported) {
  SetDecider decider(2, 3, 2);
  decider.received(0, 0);
  decider.received(1, 0);
  decider.received(0, 1);
  decider.forget(1);
  EXPECT_EQ(decider.received(1, 1), std::nullopt) << "rank 0 is on one ps only, again";
  EXPECT_EQ(decider.received(1, 0), (Ranks{0, 1}));
}

TEST(SetDecider, WhatIsForgottenAndReportedAgainCountsOnce) {
  SetDecider decider(2, 3, 2);
  decider.received(0, 0);
  decider.received(1, 0);
  decider.forget(1);
  EXPECT_EQ(decider.received(1, 0), std::nullopt) << "one rank, however often it came";
  decider.received(0, 2);
  EXPECT_EQ(decider.received(1, 2), (Ranks{0, 2}));
}

TEST(SetDecider, ACompleteSetIsNotForgotten) {
  SetDecider decider(2, 2, 1);
  decider.received(0, 0);
  EXPECT_EQ(decider.received(1, 0), (Ranks{0}));
  decider.forget(1);
  EXPECT_EQ(decider.received(1, 0), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(1, 1), std::nullopt) << "the step has its set";
}

}  // namespace
}  // namespace dtf::ps
