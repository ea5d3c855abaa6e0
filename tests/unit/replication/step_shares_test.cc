#include "common/replication/step_shares.h"

#include <gtest/gtest.h>

namespace dtf::replication {
namespace {

// Batches of two, of three workers. The second step of an epoch has the rest of `examples` after
// six.
StepShares shares(uint64_t examples, uint32_t aggregate = 2) {
  arena::ModelDeclaration job;
  job.replication = {cluster::ReplicationSpec::Mode::kSync, aggregate, 3};
  if (examples > 0) job.epochs = {.examples = examples, .batch_size = 2};
  return {job, 3};
}

bool anybody(uint32_t) {
  return true;
}

TEST(StepShares, AStepIsShortWhereNotAllHaveExamples) {
  EXPECT_FALSE(shares(8).isShort(0));
  EXPECT_TRUE(shares(8).isShort(1));
  EXPECT_FALSE(shares(8).isShort(2));
  EXPECT_FALSE(shares(9).isShort(1)) << "one each";
  EXPECT_FALSE(shares(8, 3).isShort(1)) << "without backup workers all are waited for";
  EXPECT_FALSE(shares(0).isShort(1)) << "whole batches";
}

TEST(StepShares, AShortStepNeedsThoseWithExamplesThatMayCome) {
  EXPECT_EQ(shares(8).counting(1), 2u);
  EXPECT_TRUE(shares(8).counts(1, 1));
  EXPECT_FALSE(shares(8).counts(1, 2));
  EXPECT_EQ(shares(8).needed(1, anybody), 2u);
  EXPECT_EQ(shares(7).needed(1, anybody), 1u);
  EXPECT_EQ(shares(8).needed(1, [](uint32_t rank) { return rank != 1; }), 1u);
  EXPECT_EQ(shares(7).needed(1, [](uint32_t rank) { return rank != 0; }), 0u);
  EXPECT_EQ(shares(8).needed(0, [](uint32_t rank) { return rank == 0; }), 2u) << "a whole step";
  EXPECT_EQ(shares(8).examples(1, 2, 0), 0u);
  EXPECT_EQ(shares(0).examples(1, 2, 0), 1u);
}

TEST(StepShares, ASetIsOfRanksThatCount) {
  EXPECT_TRUE(shares(8).canBeSet(0, {1, 2}));
  EXPECT_FALSE(shares(8).canBeSet(0, {1}));
  EXPECT_FALSE(shares(8).canBeSet(0, {2, 1}));
  EXPECT_FALSE(shares(8).canBeSet(0, {2, 3}));
  EXPECT_TRUE(shares(8).canBeSet(1, {1})) << "worker/0 may have been given up";
  EXPECT_FALSE(shares(8).canBeSet(1, {1, 2}));
  EXPECT_FALSE(shares(8).canBeSet(1, {}));
}

}  // namespace
}  // namespace dtf::replication
