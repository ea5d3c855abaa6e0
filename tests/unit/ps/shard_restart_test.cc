#include <gtest/gtest.h>

#include "tests/unit/ps/shard_driver.h"

namespace dtf::ps {
namespace {

using std::chrono::seconds;

constexpr Incarnation kOnlyLife{1};

// Of three workers one was lost for good before ps/0 was started again, which can't know it.
class WithoutABackup : public ::testing::Test {
 protected:
  WithoutABackup() {
    for (const uint32_t rank : {0, 1}) shard_.join(rank, kOnlyLife);
    shard_.declare(0, kOnlyLife, job_.model);
    shard_.initialise(0, kOnlyLife, std::vector<float>(job_.elements));
    arriveAtStart(1, Arrival::kFirst);
  }
  void arriveAtStart(uint32_t rank, Arrival arrival) {
    shard_.barrier(rank, kOnlyLife, kStartBarrier, arrival, seconds(60),
                   [this](const WaitAnswer& answer) {
                     start_ = std::holds_alternative<Arrived>(answer) ? "passed" : "failed";
                   });
  }
  std::shared_ptr<Recorded> push(uint32_t rank, uint64_t step) {
    auto values = std::make_shared<std::vector<float>>(job_.elements, -1.0F);
    auto recorded = std::make_shared<Recorded>();
    shard_.push({.rank = rank,
                 .incarnation = kOnlyLife,
                 .step = step,
                 .batch = 0,
                 .epoch = kFirstEpoch,
                 .sequence = 0,
                 .gradient = *values,
                 .owner = values},
                [recorded](const PushAnswer& answer) {
                  recorded->answer = std::make_shared<PushAnswer>(answer);
                });
    return recorded;
  }

  ShardDriver job_{3, 2, 100};  // whose model, clock and runner the shard below has
  Shard shard_{ShardOptions{.ps_task = 0, .ps_tasks = 1, .workers = 3}, job_.clock, job_.runner,
               &job_.peers, nullptr};
  std::string start_ = "waits";
};

TEST_F(WithoutABackup, WhoeverStartsDoesNotWaitForItWhereAnotherIsTraining) {
  EXPECT_EQ(start_, "waits");
  arriveAtStart(0, Arrival::kPassedBefore);
  EXPECT_EQ(start_, "passed");
}

TEST_F(WithoutABackup, ItIsGivenUpAndMayComeStill) {
  arriveAtStart(0, Arrival::kFirst);
  EXPECT_EQ(start_, "waits");
  EXPECT_NE(shard_.status().missing.find("worker/2"), std::string::npos);
  shard_.giveUpAwaited();
  EXPECT_EQ(start_, "passed");
  push(0, 0);
  EXPECT_EQ(push(1, 0)->state().outcome, Outcome::kApplied) << "two of three make a step";
  EXPECT_TRUE(shard_.join(2, kOnlyLife));
}

}  // namespace
}  // namespace dtf::ps
