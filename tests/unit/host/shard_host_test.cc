#include "common/host/shard_host.h"

#include <gtest/gtest.h>

#include "tests/support/still_loop.h"

namespace dtf::host {
namespace {

// A host with a data loop that runs when a test calls data_.run().
class ShardHostTest : public ::testing::Test {
 protected:
  ShardHostTest() {
    host_.start({.workers = 3}, std::make_unique<optimizer::InlineUpdateRunner>(), nullptr,
                nullptr);
  }
  ~ShardHostTest() noexcept override { host_.stop(); }

  // Returns the number of `promise`, or its error; "waits" while it is pending.
  std::string outcome(kj::Promise<size_t>& promise) {
    loop_.settle();
    if (!promise.poll(loop_.waitScope())) return "waits";
    try {
      return std::to_string(promise.wait(loop_.waitScope()));
    } catch (const kj::Exception& exception) {
      return net::toError(exception).message();
    }
  }
  kj::Promise<size_t> countMembers() {
    return host_.askNow<size_t>([](shard::Shard& shard) { return shard.status().members.size(); })
        .eagerlyEvaluate(nullptr);
  }

  testing::StillLoop loop_;
  testing::BusyLoop data_{loop_};
  ShardHost host_{loop_, data_, loop_};
};

TEST_F(ShardHostTest, AQuestionIsAnsweredByTheDataLoop) {
  kj::Promise<size_t> asked = countMembers();
  EXPECT_EQ(outcome(asked), "waits");
  data_.run();
  EXPECT_EQ(outcome(asked), "3");
}

TEST_F(ShardHostTest, WhatTheShardThrowsIsTheAnswer) {
  kj::Promise<size_t> asked = host_
                                  .askNow<size_t>([](shard::Shard& shard) -> size_t {
                                    shard.workers().heartbeat(0, Incarnation{1});
                                    return 0;
                                  })
                                  .eagerlyEvaluate(nullptr);
  data_.run();
  EXPECT_NE(outcome(asked).find("worker/0 has not joined"), std::string::npos);
}

TEST_F(ShardHostTest, FailingAllAnswersWhatWaitsAndWhatIsAskedLater) {
  kj::Promise<size_t> before = countMembers();
  host_.failAll(Error(ErrorCode::kUnavailable, "this ps ends"));
  EXPECT_EQ(outcome(before), "this ps ends");
  kj::Promise<size_t> after = countMembers();
  EXPECT_EQ(outcome(after), "this ps ends");
  data_.run();  // the reply to the first call finds no caller any more
  loop_.settle();
}

TEST_F(ShardHostTest, WorkOnTheDiskLoopIsAnsweredTheSameWay) {
  kj::Promise<size_t> asked = host_.onDisk<size_t>(
      []() -> size_t { throw Error(ErrorCode::kBadData, "shard-0: damaged"); });
  EXPECT_EQ(outcome(asked), "shard-0: damaged");
}

}  // namespace
}  // namespace dtf::host
