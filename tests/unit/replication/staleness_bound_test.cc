#include "common/replication/staleness_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace dtf::replication {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr bool kLeads = true;
constexpr bool kFollows = false;
constexpr uint64_t kNone = 0;  // a worker that has no clock yet brings none

bool nobodyRests(uint32_t) {
  return false;
}

// All three workers of ps/0 have pulled.
StalenessBound allBegun(uint64_t staleness) {
  StalenessBound bound(staleness, 3, kLeads, nobodyRests);
  for (uint32_t rank = 0; rank < 3; ++rank) bound.begin(rank, kNone);
  return bound;
}

TEST(StalenessBound, WithoutABoundNobodyWaits) {
  StalenessBound bound(std::nullopt, 2, kLeads, nobodyRests);
  EXPECT_FALSE(bound.exists());
  bound.begin(0, kNone);
  bound.begin(1, kNone);
  for (int i = 0; i < 10; ++i) bound.advance(0, kNone);
  EXPECT_FALSE(bound.mustWait(0));
  EXPECT_EQ(bound.clock(0), 0u);
  EXPECT_FALSE(bound.counts(0));
  EXPECT_EQ(bound.after(0, 5), 0u);
  EXPECT_TRUE(bound.isSane(kNone));
  EXPECT_THAT(bound.behind(0), IsEmpty());
}

TEST(StalenessBound, AWorkerWaitsWhenItIsTooFarAhead) {
  StalenessBound bound = allBegun(2);
  for (int i = 0; i < 2; ++i) bound.advance(0, kNone);
  EXPECT_FALSE(bound.mustWait(0)) << "two steps ahead";
  bound.advance(0, kNone);
  EXPECT_TRUE(bound.mustWait(0)) << "three steps ahead";
  EXPECT_THAT(bound.behind(0), ElementsAre(1, 2));
  EXPECT_FALSE(bound.mustWait(1));
  bound.advance(1, kNone);
  EXPECT_THAT(bound.behind(0), ElementsAre(2));
  bound.advance(2, kNone);
  EXPECT_FALSE(bound.mustWait(0));
}

TEST(StalenessBound, ABoundOfZeroKeepsAllInStep) {
  StalenessBound bound = allBegun(0);
  bound.advance(0, kNone);
  EXPECT_TRUE(bound.mustWait(0));
  bound.advance(1, kNone);
  bound.advance(2, kNone);
  EXPECT_FALSE(bound.mustWait(0));
}

TEST(StalenessBound, ALostWorkerHoldsNobodyUp) {
  StalenessBound bound = allBegun(0);
  bound.advance(0, kNone);
  bound.advance(1, kNone);
  EXPECT_TRUE(bound.mustWait(0));
  bound.countNoMore(2);
  EXPECT_FALSE(bound.mustWait(0));
  bound.begin(2, kNone);
  EXPECT_EQ(bound.clock(2), kProgressFirst + 1) << "its successor begins at the slowest";
  EXPECT_FALSE(bound.mustWait(0));
}

TEST(StalenessBound, AfterTheLossOfAllTheNextBeginsAtTheFurthest) {
  StalenessBound bound = allBegun(5);
  bound.advance(1, kNone);
  for (uint32_t rank = 0; rank < 3; ++rank) bound.countNoMore(rank);
  bound.begin(0, kNone);
  EXPECT_EQ(bound.clock(0), kProgressFirst + 1);
}

TEST(StalenessBound, AnUncountedPushHoldsNobodyUp) {
  StalenessBound bound = allBegun(0);
  bound.countNoMore(2);
  bound.advance(0, kNone);
  bound.advance(1, kNone);
  EXPECT_EQ(bound.after(2, kNone), kProgressFirst + 1) << "of a process that didn't pull here";
  bound.advance(2, kNone);
  EXPECT_TRUE(bound.counts(2));
  EXPECT_FALSE(bound.mustWait(2));
}

TEST(StalenessBound, AnotherPsTakesTheClockThatTheWorkerBrings) {
  StalenessBound bound(1, 2, kFollows, nobodyRests);
  bound.begin(0, kNone);
  EXPECT_FALSE(bound.counts(0)) << "it has none yet";
  bound.begin(0, 4);
  bound.begin(1, 4);
  EXPECT_EQ(bound.after(0, 7), 8u);
  bound.advance(0, 7);
  EXPECT_EQ(bound.clock(0), 8u);
  EXPECT_TRUE(bound.mustWait(0));
  bound.begin(1, 7);
  EXPECT_FALSE(bound.mustWait(0));
}

TEST(StalenessBound, AtTheEndNobodyWaits) {
  StalenessBound bound(0, 2, kFollows, nobodyRests);
  bound.begin(0, kProgressEnd);
  bound.begin(1, 3);
  EXPECT_FALSE(bound.mustWait(0)) << "it was told of the job's end";
  EXPECT_FALSE(bound.mustWait(1));
  EXPECT_THAT(bound.behind(1), IsEmpty());
}

TEST(StalenessBound, AWorkerThatRestsHoldsNobodyUp) {
  std::set<uint32_t> resting;
  StalenessBound bound(0, 2, kLeads, [&](uint32_t rank) { return resting.contains(rank); });
  bound.begin(0, kNone);
  bound.begin(1, kNone);
  bound.advance(0, kNone);
  EXPECT_TRUE(bound.mustWait(0));
  resting.insert(1);
  bound.findSlowest();
  EXPECT_FALSE(bound.mustWait(0));
}

TEST(StalenessBound, ARememberedWorkerCountsOnceItIsHere) {
  StalenessBound bound(1, 3, kLeads, nobodyRests);
  bound.remember(0, 9);
  bound.remember(1, 7);
  bound.remember(2, 2);
  bound.recall(0, false);
  bound.recall(1, true);
  bound.recall(2, true);
  EXPECT_FALSE(bound.counts(0)) << "its process is not here";
  EXPECT_TRUE(bound.counts(1));
  EXPECT_FALSE(bound.counts(2)) << "it was lost long before";
  bound.recall(0, true);
  EXPECT_TRUE(bound.mustWait(0));
  EXPECT_THAT(bound.behind(0), ElementsAre(1));
}

TEST(StalenessBound, AnotherPsRecallsNobody) {
  StalenessBound bound(1, 1, kFollows, nobodyRests);
  bound.remember(0, 9);
  bound.recall(0, true);
  EXPECT_FALSE(bound.counts(0)) << "its earlier process may have been told of the end";
}

TEST(StalenessBound, ABroughtClockIsBounded) {
  const StalenessBound bound(1, 1, kFollows, nobodyRests);
  EXPECT_FALSE(bound.isSane(0));
  EXPECT_TRUE(bound.isSane(kProgressFirst));
  EXPECT_TRUE(bound.isSane(kProgressEnd - 2));
  EXPECT_FALSE(bound.isSane(kProgressEnd - 1)) << "after it, it would be the end's";
  EXPECT_FALSE(bound.isSane(kProgressEnd));
}

}  // namespace
}  // namespace dtf::replication
