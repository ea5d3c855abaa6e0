#include "common/replication/step_parts.h"

#include <gtest/gtest.h>

namespace dtf::replication {
namespace {

using Ranks = std::vector<uint32_t>;
using std::chrono::seconds;

class StepPartsTest : public ::testing::Test {
 protected:
  StepParts parts(uint64_t examples = 7) {
    arena::ModelDeclaration job;
    job.steps = 7;
    if (examples > 0) job.epochs = {.examples = examples, .batch_size = 1};
    StepParts made(job, 3, clock_, {.step = seconds(10), .rejoin = seconds(30)});
    for (uint32_t rank = 0; rank < 3; ++rank) made.joined(rank);
    return made;
  }
  ManualClock clock_;
};

TEST_F(StepPartsTest, AreTheBatchesWithTheNumbersOfAWorker) {
  StepParts seven = parts();
  for (uint32_t rank = 0; rank < 3; ++rank) seven.pushed(rank, 2);
  EXPECT_EQ(seven.awaited(), Ranks{0}) << "batches 0, 3 and 6";
  EXPECT_TRUE(seven.mustWait(1));
  EXPECT_FALSE(seven.mustWait(0));
  seven.pushed(0, 3);
  EXPECT_TRUE(seven.awaited().empty());
  EXPECT_FALSE(seven.mustWait(1)) << "what may be left is for all";
}

TEST_F(StepPartsTest, AJobOfWholeBatchesHasNone) {
  StepParts none = parts(0);
  none.pushed(0, 7);
  EXPECT_TRUE(none.awaited().empty());
  EXPECT_FALSE(none.mustWait(0));
}

TEST_F(StepPartsTest, AWorkerRestsUnlessItDoesTheStepsOfAnother) {
  StepParts seven = parts();
  seven.pushed(1, 2);
  EXPECT_TRUE(seven.rests(1));
  EXPECT_FALSE(seven.rests(0));
  seven.pushed(0, 3);
  seven.pushed(2, 2);
  for (uint32_t rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(seven.rests(rank)) << "another ps may still await the last push";
  seven.pushed(2, 1);
  seven.finished(2);
  EXPECT_FALSE(seven.rests(0)) << "it does the part that was given up";
  EXPECT_FALSE(parts(0).rests(0)) << "a job of whole batches";
}

TEST_F(StepPartsTest, AWorkerThatIsLostIsAwaitedForAWhile) {
  StepParts seven = parts();
  seven.pushed(0, 3);
  seven.pushed(1, 2);
  seven.lost(2);
  clock_.advance(seconds(29));
  EXPECT_EQ(seven.awaited(), Ranks{2});
  clock_.advance(seconds(2));
  EXPECT_TRUE(seven.awaited().empty());
  seven.joined(2);
  EXPECT_EQ(seven.awaited(), Ranks{2});
  seven.finished(2);
  EXPECT_TRUE(seven.awaited().empty());
}

TEST_F(StepPartsTest, APartThatIsAwaitedNoLongerIsReportedOnce) {
  StepParts seven = parts();
  seven.pushed(0, 3);
  seven.lost(0);
  seven.lost(2);
  EXPECT_TRUE(seven.takeGivenUp().empty()) << "it may return";
  clock_.advance(seconds(31));
  EXPECT_EQ(seven.takeGivenUp(), Ranks{2}) << "worker/0 has done its part";
  EXPECT_TRUE(seven.takeGivenUp().empty());
  seven.joined(2);
  seven.lost(2);
  clock_.advance(seconds(31));
  EXPECT_EQ(seven.takeGivenUp(), Ranks{2}) << "again";
  StepParts none = parts(0);
  none.lost(1);
  clock_.advance(seconds(31));
  EXPECT_TRUE(none.takeGivenUp().empty());
}

TEST_F(StepPartsTest, AnAwaitedWorkerMakesHeadwayWhileItPushesOrMayReturn) {
  StepParts seven = parts();
  seven.pushed(0, 3);
  seven.pushed(1, 2);
  clock_.advance(seconds(29));
  EXPECT_TRUE(seven.makeHeadway()) << "it has just joined";
  clock_.advance(seconds(1));
  EXPECT_FALSE(seven.makeHeadway());
  seven.pulled(2);
  clock_.advance(seconds(9));
  EXPECT_TRUE(seven.makeHeadway());
  seven.pushed(2, 1);
  clock_.advance(seconds(9));
  EXPECT_TRUE(seven.makeHeadway());
  clock_.advance(seconds(1));
  EXPECT_FALSE(seven.makeHeadway());
  EXPECT_TRUE(seven.mustWait(0)) << "it is awaited all the same";
  seven.lost(2);
  clock_.advance(seconds(29));
  EXPECT_TRUE(seven.makeHeadway());
  seven.joined(2);
  seven.pushed(2, 2);
  EXPECT_FALSE(seven.makeHeadway()) << "nobody is awaited";
}

}  // namespace
}  // namespace dtf::replication
