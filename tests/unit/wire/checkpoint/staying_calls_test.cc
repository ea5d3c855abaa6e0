#include "common/wire/checkpoint/staying_calls.h"

#include "common/checkpoint/shard_transfer.h"
#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire {
namespace {

using checkpoint::FoundShard;
using checkpoint::Standing;
using Calls = std::vector<std::string>;

class StayingCallsTest : public fake::FakeCluster {
 protected:
  StayingCallsTest() : FakeCluster(2) {
    control_ =
        std::make_unique<ControlCalls>(loop_, options_, ControlCalls::Events{[](const Error&) {}});
    get(control_->opened());
    checkpoint_ = std::make_unique<CheckpointCalls>(*control_, 120);
    get(checkpoint_->open());
    calls_ = std::make_unique<StayingCalls>(*checkpoint_);
    for (fake::FakePs& ps : ps_) {
      ps.calls.clear();
      ps.shard_bytes = "0123456789";
    }
  }
  ~StayingCallsTest() noexcept override {}

  std::unique_ptr<ControlCalls> control_;
  std::unique_ptr<CheckpointCalls> checkpoint_;
  std::unique_ptr<StayingCalls> calls_;
};

TEST_F(StayingCallsTest, EveryPsSavesAndRemoves) {
  const auto saved = get(calls_->save("step-7-1.1", {7}));
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved[1].file.file, "step-7-1.1");
  get(calls_->drop("step-7-1.1"));
  for (const fake::FakePs& ps : ps_)
    EXPECT_EQ(ps.calls, (Calls{"save staying", "drop step-7-1.1"}));
}

TEST_F(StayingCallsTest, OnlyWhoIsAskedForFilesLooks) {
  ps_[1].found = {{Standing::kWhole, ""}, {Standing::kDamaged, "bad"}, {Standing::kAbsent, ""}};
  const std::vector<checkpoint::ShardFile> files = {
      {"a", 1, 2, {}}, {"b", 3, 4, {}}, {"c", 5, 6, {}}};
  const auto found = get(calls_->find("step-7-1.1", {{}, files}));
  EXPECT_TRUE(found.at(0).empty());
  ASSERT_EQ(found.at(1).size(), 3u);
  EXPECT_EQ(found[1][0].standing, Standing::kWhole);
  EXPECT_EQ(found[1][1].reason, "bad");
  EXPECT_EQ(found[1][2].standing, Standing::kAbsent);
  EXPECT_EQ(ps_[0].calls, Calls{});
  const Error error = errorOf(calls_->find("step-7-1.1", {files, {}}));
  EXPECT_EQ(error.message(), "a ps reported the state of 0 shards instead of 3");
}

TEST_F(StayingCallsTest, APieceIsWhatWasAskedForOrRefused) {
  EXPECT_EQ(get(calls_->fetch(1, {"step-7-1.1", "f", 2, 5})), "23456");
  EXPECT_EQ(ps_[1].calls, Calls{"fetch f"});
  ps_[1].damages = true;
  EXPECT_EQ(errorOf(calls_->fetch(1, {"step-7-1.1", "f", 2, 5})).code(), ErrorCode::kUnavailable);
  ps_[1].damages = false;
  EXPECT_EQ(errorOf(calls_->fetch(1, {"step-7-1.1", "f", 8, 5})).code(), ErrorCode::kBadData);
}

TEST_F(StayingCallsTest, APsThatIsLostIsNamed) {
  ps_[1].hangs = "drop step-7-1.1";
  auto dropping = calls_->drop("step-7-1.1");
  loop_.settle();
  kill(1);
  const Error error = errorOf(kj::mv(dropping));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(error.message().find("lost ps/1, which was to remove its shard of a checkpoint"),
            std::string::npos)
      << error.message();
}

}  // namespace
}  // namespace dtf::wire
