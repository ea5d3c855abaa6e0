#include "common/wire/checkpoint/checkpoint_calls.h"

#include "tests/unit/wire/fake_cluster.h"

namespace dtf::wire {
namespace {

using std::chrono::seconds;

constexpr double kDiskSeconds = 30;

class CheckpointCallsTest : public fake::FakeCluster {
 protected:
  CheckpointCallsTest() : FakeCluster(2) {
    control_ =
        std::make_unique<ControlCalls>(loop_, options_, ControlCalls::Events{[](const Error&) {}});
    get(control_->opened());
    calls_ = std::make_unique<CheckpointCalls>(*control_, kDiskSeconds);
  }
  ~CheckpointCallsTest() noexcept override {}

  std::unique_ptr<ControlCalls> control_;
  std::unique_ptr<CheckpointCalls> calls_;
};

TEST_F(CheckpointCallsTest, EveryPsSaysWhatItHolds) {
  ps_[0].holds_values = true;
  ps_[0].step = 4;
  const std::vector<checkpoint::PsState> held = get(calls_->open());
  ASSERT_EQ(held.size(), ps_.size());
  EXPECT_EQ(held[0].epoch, replication::kFirstEpoch);
  EXPECT_EQ(held[0].step, 4u);
  EXPECT_EQ(held[1].epoch, 0u);
}

TEST_F(CheckpointCallsTest, APsIsAskedAgainWhenItsConnectionBreaksBeforeTheAnswer) {
  ps_[1].hangs = "supervise";
  auto opening = calls_->open();
  loop_.settle();
  ASSERT_FALSE(opening.poll(loop_.waitScope()));
  ps_[1].hangs.reset();
  ps_[1].holds_values = true;
  kill(1);
  loop_.live(seconds(1));
  const std::vector<checkpoint::PsState> held = get(kj::mv(opening));
  EXPECT_EQ(held[1].epoch, replication::kFirstEpoch);
}

TEST_F(CheckpointCallsTest, PositionsComeInTheOrderOfThePs) {
  get(calls_->open());
  ps_[0].step = 4;
  ps_[1].step = 5;
  EXPECT_EQ(get(calls_->positions(false)), (std::vector<CutPosition>{{4}, {5}}));
}

TEST_F(CheckpointCallsTest, ACutHasTheVersionOfPs0) {
  get(calls_->open());
  ps_[0].step = 12;
  ps_[1].step = 11;
  get(calls_->startCut({11}, replication::kFirstEpoch));
  EXPECT_EQ(get(calls_->awaitCut()), 12u);
}

TEST_F(CheckpointCallsTest, ACutThatOnePsIsTooLateForIsNone) {
  get(calls_->open());
  ps_[1].captures = false;
  get(calls_->startCut({11}, replication::kFirstEpoch));
  EXPECT_EQ(get(calls_->awaitCut()), std::nullopt);
}

TEST_F(CheckpointCallsTest, CalledOffACutIsNotAwaited) {
  get(calls_->open());
  ps_[1].hangs = "cut";
  get(calls_->startCut({11}, replication::kFirstEpoch));
  auto cut = calls_->awaitCut();
  loop_.settle();
  EXPECT_FALSE(cut.poll(loop_.waitScope()));
  calls_->callOffCuts();
  EXPECT_EQ(errorOf(kj::mv(cut)).message(), "the checkpoint was called off: the job ends");
}

TEST_F(CheckpointCallsTest, InterruptedOnlyTheCutUnderWayIsGivenUp) {
  get(calls_->open());
  ps_[1].hangs = "cut";
  get(calls_->startCut({11}, replication::kFirstEpoch));
  auto cut = calls_->awaitCut();
  loop_.settle();
  calls_->interruptCuts();
  EXPECT_EQ(errorOf(kj::mv(cut)).message(), "the checkpoint was given up: a ps was lost");
  ps_[1].hangs = "";
  get(calls_->startCut({12}, replication::kFirstEpoch));
  EXPECT_TRUE(get(calls_->awaitCut()));
}

TEST_F(CheckpointCallsTest, WhatIsReadIsTakenWhenEveryPsHasReadIt) {
  get(calls_->open());
  ps_[1].refusal = Error(ErrorCode::kBadData, "shard-1.safetensors is cut short");
  EXPECT_EQ(errorOf(calls_->restore({"step-5", 0, 5, replication::kFirstEpoch})).message(),
            "shard-1.safetensors is cut short");
  EXPECT_EQ(ps_[0].calls.back(), "restore") << "not commitRestore";
  ps_[1].refusal.reset();
  get(calls_->restore({"step-5", 0, 5, replication::kFirstEpoch}));
  EXPECT_EQ(ps_[0].calls.back(), "commitRestore");
}

TEST_F(CheckpointCallsTest, APsWhoseDiskHangsIsNamedAtTheDeadline) {
  get(calls_->open());
  ps_[1].hangs = "save";
  std::optional<Error> error;
  auto saving =
      calls_->save("step-7.tmp", {7}).ignoreResult().eagerlyEvaluate([&](kj::Exception&& e) {
        error = net::toError(e);
      });
  loop_.live(seconds(29));
  EXPECT_FALSE(error) << error->message();
  loop_.live(seconds(2));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kDeadline);
  EXPECT_EQ(error->message(), "waited 30 s for ps/1 to write its shard of the checkpoint");
}

TEST_F(CheckpointCallsTest, WhatAPsCanNotHaveSavedIsBadData) {
  get(calls_->open());
  ps_[1].claims_parts = true;
  const Error error = errorOf(calls_->save("step-7.tmp", {7}));
  EXPECT_EQ(error.code(), ErrorCode::kBadData);
  EXPECT_NE(error.message().find("parts of variables"), std::string::npos) << error.message();
}

TEST_F(CheckpointCallsTest, APsThatIsLostMeanwhileEndsTheCall) {
  get(calls_->open());
  ps_[1].hangs = "save";
  auto saving = calls_->save("step-7.tmp", {7});
  loop_.settle();
  away_ = true;
  kill(1);
  loop_.live(seconds(29));  // longer than a disk may take
  const Error error = errorOf(kj::mv(saving));
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_NE(error.message().find("lost ps/1"), std::string::npos) << error.message();
}

using CheckpointCallsDeathTest = CheckpointCallsTest;

TEST_F(CheckpointCallsDeathTest, NothingIsAskedBeforeThePsWereAskedForTheirPart) {
  EXPECT_DEATH(calls_->positions(false), "check failed: ps_");
  EXPECT_DEATH(calls_->restore({"step-1", 0, 1, replication::kFirstEpoch}), "check failed: ps_");
  get(calls_->open());
  EXPECT_DEATH(calls_->awaitCut(), "check failed: cuts_");
}

}  // namespace
}  // namespace dtf::wire
