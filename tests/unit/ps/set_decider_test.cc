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

}  // namespace
}  // namespace dtf::ps
