#include "common/shard/shard_peers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {
namespace {

using namespace replication;
using std::chrono::seconds;

constexpr Incarnation kChiefsLife{1};
constexpr uint64_t kEpochAfter = nextEpoch(kFirstEpoch, 5);

// Returns a cut of `driver`'s shard: every parameter is `value`.
RestoredShard stateAt(const ShardDriver& driver, CutPosition position, uint64_t version,
                      float value) {
  RestoredShard state;
  state.epoch = kEpochAfter;
  state.origin_cut = {kFirstEpoch, version};
  state.position = std::move(position);
  state.step = version;
  state.values = Buffer(driver.elements * sizeof(float));
  std::fill_n(state.values.as<float>(), driver.elements, value);
  return state;
}

// ps/0 of two; a step takes one gradient of two workers.

class LeaderOfTwo : public ::testing::Test {
 protected:
  LeaderOfTwo()
      : driver_(2, 1, 10, 0, 2, false, true, cluster::OptimizerSpec::Kind::kGradientDescent,
                seconds(60)) {}
  ShardDriver driver_;
};

TEST_F(LeaderOfTwo, WhatIsOfAnEpochThatWasLeftIsNotHeard) {
  driver_.shard.recovery().restore(kChiefsLife, stateAt(driver_, {3}, 3, 7));
  driver_.push(0, 3, 1, 0, 1, kEpochAfter);
  driver_.shard.peers().onReceived(1, {kFirstEpoch, 3}, 0);
  EXPECT_TRUE(driver_.peers.decisions.empty());
  driver_.shard.peers().onReceived(1, {kEpochAfter, 3}, 0);
  EXPECT_EQ(driver_.peers.decisions.size(), 1u);
  driver_.shard.peers().onDecision({kFirstEpoch, 9}, {0});  // no effect, no error
}

TEST_F(LeaderOfTwo, AFollowerMayBeOnTheNextEpochFirst) {
  driver_.shard.peers().onReceived(1, {kEpochAfter, 3}, 0);
  driver_.shard.recovery().restore(kChiefsLife, stateAt(driver_, {3}, 3, 7));
  EXPECT_TRUE(driver_.peers.decisions.empty()) << "ps/0 itself has no gradient";
  driver_.push(0, 3, 1, 0, 1, kEpochAfter);
  EXPECT_EQ(driver_.peers.decisions.size(), 1u);
}

TEST_F(LeaderOfTwo, EarlyReportsAreBounded) {
  for (uint64_t epoch = kEpochAfter; epoch < kEpochAfter + 1000; ++epoch)
    driver_.shard.peers().onReceived(1, {epoch, 3}, 0);
  EXPECT_THROW(driver_.shard.peers().onReceived(1, {kEpochAfter, 3}, 2), Error) << "no such worker";
  EXPECT_THROW(driver_.shard.peers().onReceived(2, {kEpochAfter, 3}, 0), Error) << "no such ps";
  EXPECT_THROW(driver_.shard.peers().onDecision({kEpochAfter, 3}, {0}), Error);
}

}  // namespace
}  // namespace dtf::shard
