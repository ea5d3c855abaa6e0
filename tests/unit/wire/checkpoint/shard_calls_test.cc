#include "common/wire/checkpoint/shard_calls.h"

#include <numeric>

#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire {
namespace {

using std::chrono::seconds;
using Calls = std::vector<std::string>;

constexpr uint64_t kPiece = checkpoint::kPieceBytesMax;
constexpr double kWholeSeconds = 120;

class ShardCallsTest : public fake::FakeCluster {
 protected:
  ShardCallsTest() : FakeCluster(2) {
    control_ =
        std::make_unique<ControlCalls>(loop_, options_, ControlCalls::Events{[](const Error&) {}});
    get(control_->opened());
    checkpoint_ = std::make_unique<CheckpointCalls>(*control_, kWholeSeconds);
    get(checkpoint_->open());
    calls_ = std::make_unique<ShardCalls>(*checkpoint_);
    for (fake::FakePs& ps : ps_) {
      ps.calls.clear();
      ps.shard_bytes.resize(2 * kPiece + 100);
      for (size_t i = 0; i < ps.shard_bytes.size(); ++i)
        ps.shard_bytes[i] = static_cast<char>(i * 7 + i / 1000);
    }
  }
  ~ShardCallsTest() noexcept override {}

  std::string fetch(uint32_t ps_task, uint64_t offset) {
    return get(calls_->fetch(ps_task, offset, ps_[ps_task].shard_bytes.size()));
  }

  std::unique_ptr<ControlCalls> control_;
  std::unique_ptr<CheckpointCalls> checkpoint_;
  std::unique_ptr<ShardCalls> calls_;
};

TEST_F(ShardCallsTest, AShardComesInPiecesOfWhichTheNextIsUnderWay) {
  EXPECT_EQ(get(calls_->stage({7})).at(1).file.bytes, ps_[1].shard_bytes.size());
  std::string bytes = fetch(1, 0);
  EXPECT_EQ(bytes.size(), kPiece);
  EXPECT_EQ(ps_[1].calls.back(), "fetch " + std::to_string(kPiece)) << "before it is asked for";
  bytes += fetch(1, kPiece);
  bytes += fetch(1, 2 * kPiece);
  EXPECT_EQ(bytes, ps_[1].shard_bytes);
  EXPECT_EQ(ps_[1].calls, (Calls{"stage", "fetch 0", "fetch " + std::to_string(kPiece),
                                 "fetch " + std::to_string(2 * kPiece)}))
      << "each once";
  get(calls_->release(true));
  EXPECT_EQ(ps_[0].calls, (Calls{"stage", "release saved"}));
}

TEST_F(ShardCallsTest, WhatAPsCanNotHaveMadeReadyIsBadData) {
  ps_[0].claims_parts = true;
  const Error error = errorOf(calls_->stage({7}));
  EXPECT_EQ(error.code(), ErrorCode::kBadData);
  EXPECT_NE(error.message().find("parts of variables"), std::string::npos) << error.message();
}

TEST_F(ShardCallsTest, APieceThatWasDamagedOrIsTooShortIsRefused) {
  ps_[0].damages = true;
  const Error damaged = errorOf(calls_->fetch(0, 0, ps_[0].shard_bytes.size()));
  EXPECT_EQ(damaged.code(), ErrorCode::kUnavailable) << "it may be tried again";
  EXPECT_NE(damaged.message().find("were damaged on the way"), std::string::npos);
  ps_[0].damages = false;
  const Error shorter = errorOf(calls_->fetch(0, 2 * kPiece, 3 * kPiece));
  EXPECT_EQ(shorter.code(), ErrorCode::kBadData);
  EXPECT_NE(shorter.message().find("ps/0 sent 100 bytes of its shard"), std::string::npos);
}

TEST_F(ShardCallsTest, APsThatSendsNothingIsNamedAtTheDeadline) {
  ps_[1].hangs = "fetch 0";
  std::optional<Error> error;
  auto fetching = calls_->fetch(1, 0, ps_[1].shard_bytes.size())
                      .ignoreResult()
                      .eagerlyEvaluate([&](kj::Exception&& e) { error = net::toError(e); });
  loop_.live(seconds(59));
  EXPECT_FALSE(error) << error->message();
  loop_.live(seconds(2));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kDeadline);
  EXPECT_EQ(error->message(), "waited 60 s for ps/1 to send its shard from byte 0 on");
}

TEST_F(ShardCallsTest, ATransferHasOneDeadlineWhateverItsPiecesTake) {
  get(calls_->stage({7}));
  fetch(0, 0);
  loop_.live(seconds(119));  // the chief's disk
  fetch(0, kPiece);
  ps_[0].hangs = "fetch 0";
  std::optional<Error> error;
  auto fetching = calls_->fetch(0, 0, ps_[0].shard_bytes.size())
                      .ignoreResult()
                      .eagerlyEvaluate([&](kj::Exception&& e) { error = net::toError(e); });
  loop_.settle();
  EXPECT_FALSE(error) << error->message();
  loop_.live(seconds(2));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kDeadline);
  EXPECT_EQ(error->message(),
            "waited 120 s for the shards of a checkpoint to be sent (timeouts.finish_seconds)");
  EXPECT_EQ(errorOf(calls_->fetch(1, 0, kPiece)).code(), ErrorCode::kDeadline) << "it has ended";
  get(calls_->stage({8}));
  EXPECT_EQ(fetch(1, 0).size(), kPiece) << "another has a deadline of its own";
}

TEST_F(ShardCallsTest, WhatCapturedTheCutIsGoneWhenItWasInterruptedBefore) {
  get(checkpoint_->startCut({7}, replication::kFirstEpoch));
  checkpoint_->interruptCuts();
  EXPECT_EQ(errorOf(calls_->stage({7})).message(), "the checkpoint was given up: a ps was lost");
  get(checkpoint_->startCut({8}, replication::kFirstEpoch));
  EXPECT_EQ(get(calls_->stage({8})).size(), 2u);
}

// The chief neither fetches a piece from the lost ps, nor does so next.
TEST_F(ShardCallsTest, APsThatIsLostEndsTheTransferOfTheOthersShards) {
  get(calls_->stage({7}));
  ps_[0].hangs = "fetch 0";
  auto fetching = calls_->fetch(0, 0, ps_[0].shard_bytes.size());
  loop_.settle();
  kill(1);
  const Error error = errorOf(kj::mv(fetching));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(error.message().find("lost ps/1 while it sent or received its shard"),
            std::string::npos)
      << error.message();
}

TEST_F(ShardCallsTest, InterruptedATransferEndsAtOnce) {
  get(calls_->stage({7}));
  ps_[0].hangs = "fetch 0";
  auto fetching = calls_->fetch(0, 0, ps_[0].shard_bytes.size());
  loop_.settle();
  checkpoint_->interruptCuts();
  EXPECT_EQ(errorOf(kj::mv(fetching)).message(), "the checkpoint was given up: a ps was lost");
  get(calls_->expect({7, {7}, {{}}}));  // all go back because of the loss
  const std::vector<float> values(10, 1.0f);
  get(calls_->bring(0, {0, 0}, values));
  checkpoint_->interruptCuts();  // by another
  EXPECT_EQ(errorOf(calls_->bring(0, {0, 10}, values)).code(), ErrorCode::kUnavailable);
}

TEST_F(ShardCallsTest, APsThatIsLostMeanwhileIsNamed) {
  get(calls_->stage({7}));
  ps_[1].hangs = "fetch 0";
  auto fetching = calls_->fetch(1, 0, ps_[1].shard_bytes.size());
  loop_.settle();
  kill(1);
  const Error error = errorOf(kj::mv(fetching));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(error.message().find("lost ps/1, which was to send its shard"), std::string::npos)
      << error.message();
}

TEST_F(ShardCallsTest, ValuesAreBroughtInPiecesOfWhichTwoAreUnderWay) {
  get(calls_->expect({7, {7}, {{}}}));
  std::vector<float> values(300);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::span<const float> all(values);
  ps_[1].hangs = "bring 100";
  get(calls_->bring(1, {0, 0}, all.subspan(0, 100)));
  get(calls_->bring(1, {0, 100}, all.subspan(100, 100)));
  auto third = calls_->bring(1, {0, 200}, all.subspan(200, 100));
  loop_.settle();
  EXPECT_FALSE(third.poll(loop_.waitScope())) << "one is not answered";
  EXPECT_EQ(ps_[1].brought, values);
  EXPECT_EQ(ps_[1].calls, (Calls{"expect 7", "bring 0", "bring 100", "bring 200"}));
}

TEST_F(ShardCallsTest, NothingIsTakenBeforeAllWasBrought) {
  const checkpoint::GoingBack target{"step-7", replication::kFirstEpoch, 7,
                                     replication::nextEpoch(1, 1)};
  const std::vector<float> values(10, 1.0f);
  get(calls_->expect({7, {7}, {{}}}));
  ps_[0].refusal = Error(ErrorCode::kBadData, "which came before");
  get(calls_->bring(0, {0, 0}, values));
  ps_[0].refusal.reset();
  EXPECT_EQ(errorOf(calls_->commit(target)).message(), "which came before");
  EXPECT_EQ(ps_[1].calls, Calls{"expect 7"});
  get(calls_->expect({7, {7}, {{}}}));
  get(calls_->bring(0, {0, 0}, values));
  get(calls_->commit(target));
  for (const fake::FakePs& ps : ps_) EXPECT_EQ(ps.calls.back(), "commitRestore");
}

TEST_F(ShardCallsTest, EachPsSaysWhetherItSeesAFile) {
  ps_[1].sees = false;
  EXPECT_EQ(get(checkpoint_->see("seen-1.1")), (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace dtf::wire
