#include "common/replication/set_decider.h"

#include <gtest/gtest.h>

namespace dtf::replication {
namespace {

using Ranks = std::vector<uint32_t>;

// Takes every rank.
class Decider {
 public:
  Decider(uint32_t ps_tasks, uint32_t workers, uint32_t needed)
      : decider_(ps_tasks, workers), needed_(needed) {}
  std::optional<Ranks> received(uint32_t ps_task, uint32_t rank) {
    decider_.received(ps_task, rank);
    return decider_.decide(needed_, [](uint32_t) { return true; });
  }
  void nextStep() { decider_.nextStep(); }
  void forget(uint32_t ps_task) { decider_.forget(ps_task); }

 private:
  SetDecider decider_;
  const uint32_t needed_;
};

TEST(SetDecider, TakesTheFirstRanksThatAreOnAllPs) {
  Decider decider(2, 3, 2);
  EXPECT_EQ(decider.received(0, 2), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(0, 0), std::nullopt) << "on one ps only, all of them";
  EXPECT_EQ(decider.received(1, 2), std::nullopt);
  EXPECT_EQ(decider.received(1, 0), (Ranks{0, 2}));
  EXPECT_EQ(decider.received(1, 1), std::nullopt) << "too late";
}

TEST(SetDecider, CountsARepeatedReportOnce) {
  Decider decider(2, 2, 1);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(1, 1), (Ranks{1}));
}

TEST(SetDecider, BeginsEachStepAnew) {
  Decider decider(1, 3, 2);
  decider.received(0, 0);
  EXPECT_EQ(decider.received(0, 1), (Ranks{0, 1}));
  decider.nextStep();
  EXPECT_EQ(decider.received(0, 2), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), (Ranks{1, 2}));
}

TEST(SetDecider, ForgetsWhatAPsHadReported) {
  Decider decider(2, 3, 2);
  decider.received(0, 0);
  decider.received(1, 0);
  decider.received(0, 1);
  decider.forget(1);
  EXPECT_EQ(decider.received(1, 1), std::nullopt) << "rank 0 is on one ps only, again";
  EXPECT_EQ(decider.received(1, 0), (Ranks{0, 1}));
}

TEST(SetDecider, WhatIsForgottenAndReportedAgainCountsOnce) {
  Decider decider(2, 3, 2);
  decider.received(0, 0);
  decider.received(1, 0);
  decider.forget(1);
  EXPECT_EQ(decider.received(1, 0), std::nullopt) << "one rank, however often it came";
  decider.received(0, 2);
  EXPECT_EQ(decider.received(1, 2), (Ranks{0, 2}));
}

TEST(SetDecider, ACompleteSetIsNotForgotten) {
  Decider decider(2, 2, 1);
  decider.received(0, 0);
  EXPECT_EQ(decider.received(1, 0), (Ranks{0}));
  decider.forget(1);
  EXPECT_EQ(decider.received(1, 0), std::nullopt);
  EXPECT_EQ(decider.received(0, 1), std::nullopt);
  EXPECT_EQ(decider.received(1, 1), std::nullopt) << "the step has its set";
}

TEST(SetDecider, TakesTheRanksThatCount) {
  SetDecider decider(1, 3);
  const auto counts = [](uint32_t rank) { return rank != 1; };
  decider.received(0, 1);
  EXPECT_TRUE(decider.isEverywhere(1));
  EXPECT_EQ(decider.decide(1, counts), std::nullopt);
  decider.received(0, 2);
  EXPECT_EQ(decider.decide(2, counts), std::nullopt);
  EXPECT_EQ(decider.decide(0, counts), std::nullopt) << "nobody may come";
  EXPECT_EQ(decider.decide(1, counts), Ranks{2});
}

}  // namespace
}  // namespace dtf::replication
