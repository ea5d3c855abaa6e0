#include "common/host/shard_capture.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/error.h"
#include "tests/support/still_loop.h"

namespace dtf::host {
namespace {

constexpr Incarnation kChiefOfCapture{5};

// The only ps of a job of one worker, with a capture at its first step.
class ShardCaptureTest : public ::testing::Test {
 protected:
  ShardCaptureTest() {
    host_.start({.workers = 1}, std::make_unique<optimizer::InlineUpdateRunner>(), nullptr,
                nullptr);
    host_.shard().workers().join(0, kChiefOfCapture);
    arena::ModelDeclaration model;
    model.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, 16}}}}, 1);
    model.steps = 20;
    model.replication = {cluster::ReplicationSpec::Mode::kSync, 1, 1};
    host_.shard().workers().declare(0, kChiefOfCapture, model);
    host_.shard().initialise(0, kChiefOfCapture, std::vector<float>(16, 0.5F));
    host_.shard().cuts().cutAt(kChiefOfCapture, replication::kFirstEpoch, {0},
                               [](const replication::CutAnswer&) {});
  }
  ~ShardCaptureTest() noexcept override { host_.stop(); }

  // "": it was done.
  template <class T>
  std::string outcome(kj::Promise<T> promise) {
    std::string text = "waits";
    auto done = promise
                    .then([&](T&&) { text = ""; },
                          [&](kj::Exception&& e) { text = net::toError(e).message(); })
                    .eagerlyEvaluate(nullptr);
    loop_.settle();
    return text;
  }

  testing::StillLoop loop_;
  ShardHost host_{loop_, loop_, loop_};
};

TEST_F(ShardCaptureTest, TheShardKeepsACaptureThatWasTakenNoLonger) {
  EXPECT_EQ(outcome(takeCapture(host_, kChiefOfCapture, {0})), "");
  EXPECT_NE(outcome(takeCapture(host_, kChiefOfCapture, {0})), "");
}

TEST_F(ShardCaptureTest, WhatIsWrittenCountsAsSaved) {
  EXPECT_EQ(outcome(saveCapture(host_, kChiefOfCapture, {0},
                                [](const shard::CapturedShard& captured) {
                                  EXPECT_NE(captured.capture, nullptr);
                                  return checkpoint::SavedShard{};
                                })),
            "");
  EXPECT_TRUE(host_.shard().cuts().isSaved());
}

TEST_F(ShardCaptureTest, WhatCanNotBeWrittenDoesNot) {
  EXPECT_EQ(outcome(saveCapture(host_, kChiefOfCapture, {0},
                                [](const shard::CapturedShard&) -> checkpoint::SavedShard {
                                  throw Error(ErrorCode::kCannotWrite, "the disk is full");
                                })),
            "the disk is full");
  EXPECT_FALSE(host_.shard().cuts().isSaved());
}

}  // namespace
}  // namespace dtf::host
