// When a tensor's memory returns to its sender. tests/conformance has real tasks.

#include "common/wire/session/tensor_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/still_loop.h"

namespace dtf::wire {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr uint64_t kPlan = 1, kOtherPlan = 2;

// A link to a peer that never accepts the connection.
class TensorLinkTest : public ::testing::Test {
 protected:
  TensorLinkTest() {
    loop_.on_connect = [](uint16_t) -> kj::Promise<kj::Own<net::MessageStream>> {
      return kj::NEVER_DONE;
    };
  }
  ~TensorLinkTest() noexcept override {}  // kj's may throw, gtest's may not

  TensorLinkOptions options() const {
    return {.token = SessionToken::draw(),
            .self = {JobKind::kWorker, 0},
            .incarnation = {1},
            .peer = {JobKind::kWorker, 1},
            .peer_incarnation = {2},
            .address = {"nowhere", 1},
            .patience = seconds(60)};
  }
  // Sends eight bytes; the result shows when their memory is released.
  std::weak_ptr<const void> send(TensorLink& link, uint64_t plan, uint64_t step) {
    const auto memory = std::make_shared<std::vector<std::byte>>(8);
    link.send(plan, step, {{.edge = 0, .bytes = *memory}}, memory,
              [this](std::optional<Error> failed) {
                told_.push_back(failed ? failed->message() : "arrived");
              });
    return memory;
  }
  static bool isReady(kj::Promise<void>& promise, testing::StillLoop& loop) {
    loop.settle();
    return promise.poll(loop.waitScope());
  }

  testing::StillLoop loop_;
  std::vector<std::string> told_;
};

TEST_F(TensorLinkTest, WhatWaitsForTheConnectionIsHeldAlready) {
  TensorLink link(loop_, options());
  const auto memory = send(link, kPlan, 1);
  loop_.live(seconds(1));
  EXPECT_FALSE(memory.expired());
  EXPECT_TRUE(told_.empty());
}

// Otherwise a failed step would wait as long as the link tries to connect to a frozen task.
TEST_F(TensorLinkTest, WhatWaitsForTheConnectionIsGivenUpAtOnce) {
  TensorLink link(loop_, options());
  send(link, kPlan, 1);
  auto drained = link.drained(kPlan, seconds(2)).eagerlyEvaluate(nullptr);
  EXPECT_TRUE(isReady(drained, loop_));
}

TEST_F(TensorLinkTest, OtherPlansAreNotWaitedFor) {
  TensorLink link(loop_, options());
  send(link, kOtherPlan, 1);
  auto drained = link.drained(kPlan, seconds(2)).eagerlyEvaluate(nullptr);
  EXPECT_TRUE(isReady(drained, loop_));
}

TEST_F(TensorLinkTest, WhatIsGivenUpNeverLeaves) {
  TensorLink link(loop_, options());
  const auto memory = send(link, kPlan, 1);
  auto drained = link.drained(kPlan, seconds(2)).eagerlyEvaluate(nullptr);
  EXPECT_TRUE(isReady(drained, loop_));
  loop_.live(seconds(70));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], HasSubstr("worker/0 can't send to worker/1 (nowhere:1)"));
  EXPECT_TRUE(memory.expired());
}

}  // namespace
}  // namespace dtf::wire
