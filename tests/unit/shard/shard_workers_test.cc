#include <gtest/gtest.h>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {
namespace {

using std::chrono::seconds;

constexpr Incarnation kOnlyLife{1};

// One of three workers was lost for good before ps/0 was started again, and ps/0 can't know that.
class WithoutABackup : public ::testing::Test {
 protected:
  WithoutABackup() {
    for (const uint32_t rank : {0, 1}) shard_.workers().join(rank, kOnlyLife);
    shard_.workers().declare(0, kOnlyLife, job_.model);
    shard_.initialise(0, kOnlyLife, std::vector<float>(job_.elements));
    arriveAtStart(1, replication::Arrival::kFirst);
  }
  void arriveAtStart(uint32_t rank, replication::Arrival arrival) {
    shard_.workers().barrier(
        rank, kOnlyLife, replication::kStartBarrier, arrival, seconds(60),
        [this](const replication::WaitAnswer& answer) {
          start_ = std::holds_alternative<replication::Arrived>(answer) ? "passed" : "failed";
        });
  }
  std::shared_ptr<Recorded> push(uint32_t rank, uint64_t step) {
    auto values = std::make_shared<std::vector<float>>(job_.elements, -1.0F);
    auto recorded = std::make_shared<Recorded>();
    shard_.push({.rank = rank,
                 .incarnation = kOnlyLife,
                 .step = step,
                 .batch = 0,
                 .epoch = replication::kFirstEpoch,
                 .sequence = 0,
                 .gradient = *values,
                 .owner = values},
                [recorded](const replication::PushAnswer& answer) {
                  recorded->answer = std::make_shared<replication::PushAnswer>(answer);
                });
    return recorded;
  }

  ShardDriver job_{3, 2, 100};  // lends its model, clock and runner to the shard below
  Shard shard_{ShardOptions{.ps_task = 0, .ps_tasks = 1, .workers = 3}, job_.clock, job_.runner,
               &job_.peers, nullptr};
  std::string start_ = "waits";
};

TEST_F(WithoutABackup, WhoeverStartsDoesNotWaitForItWhereAnotherIsTraining) {
  EXPECT_EQ(start_, "waits");
  arriveAtStart(0, replication::Arrival::kPassedBefore);
  EXPECT_EQ(start_, "passed");
}

TEST_F(WithoutABackup, ItIsGivenUpAndMayComeStill) {
  arriveAtStart(0, replication::Arrival::kFirst);
  EXPECT_EQ(start_, "waits");
  EXPECT_NE(shard_.status().missing.find("worker/2"), std::string::npos);
  shard_.workers().giveUpAwaited();
  EXPECT_EQ(start_, "passed");
  push(0, 0);
  EXPECT_EQ(push(1, 0)->state().outcome, replication::Outcome::kApplied)
      << "two of three make a step";
  EXPECT_TRUE(shard_.workers().join(2, kOnlyLife));
}

}  // namespace
}  // namespace dtf::shard
