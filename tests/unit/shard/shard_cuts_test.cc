#include "common/shard/shard_cuts.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {

// A sync shard of one worker, the chief, after three steps.
class ShardCutsTest : public ::testing::Test {
 protected:
  ShardCutsTest() {
    for (uint64_t step = 0; step < 3; ++step) driver_.push(0, step, 1);
  }
  // Returns the version that was captured at `step`; nullopt: none, as the shard is beyond it.
  std::optional<uint64_t> cutAt(uint64_t step) {
    std::optional<replication::CutAnswer> answer;
    cuts_.cutAt(kChief, replication::kFirstEpoch, {step},
                [&answer](replication::CutAnswer given) { answer = std::move(given); });
    const auto& result = std::get<replication::CutResult>(answer.value());
    if (result.outcome != replication::CutOutcome::kCaptured) return std::nullopt;
    return result.version;
  }

  static constexpr Incarnation kChief{1};
  ShardDriver driver_{1, 1, 10};
  ShardCuts& cuts_ = driver_.shard.cuts();
};

TEST_F(ShardCutsTest, OnlyTheCutThatWasCapturedCanBeSaved) {
  EXPECT_EQ(cuts_.position(kChief, false), CutPosition{3});
  EXPECT_EQ(cutAt(2), std::nullopt);
  EXPECT_EQ(cutAt(3), 3u);
  EXPECT_THROW(cuts_.captured(kChief, {2}), Error);
  EXPECT_EQ(cuts_.captured(kChief, {3}).capture->version, 3u);
  cuts_.releaseCapture();
  EXPECT_THROW(cuts_.captured(kChief, {3}), Error) << "its memory is free";
}

TEST_F(ShardCutsTest, IsSavedUntilTheNextUpdate) {
  EXPECT_FALSE(cuts_.isSaved());
  cuts_.noteSaved(3);
  EXPECT_TRUE(cuts_.isSaved());
  driver_.push(0, 3, 1);
  EXPECT_FALSE(cuts_.isSaved());
}

TEST_F(ShardCutsTest, AnotherProcessThanTheChiefIsRefused) {
  EXPECT_THROW(cuts_.position(Incarnation{7}, false), Error);
}

}  // namespace dtf::shard
