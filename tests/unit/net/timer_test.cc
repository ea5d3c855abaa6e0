#include "common/net/timer.h"

#include <gtest/gtest.h>

#include "common/net/reactor.h"
#include "tests/support/still_loop.h"

namespace dtf::net {
namespace {

TEST(AsioTimer, FiresInOrderOfTime) {
  Reactor reactor;
  std::string order;
  auto late = reactor.timer.afterDelay(8 * kj::MILLISECONDS)
                  .then([&] { order += 'b'; })
                  .eagerlyEvaluate(nullptr);
  auto early = reactor.timer.afterDelay(1 * kj::MILLISECONDS)
                   .then([&] { order += 'a'; })
                   .eagerlyEvaluate(nullptr);
  late.wait(reactor.wait_scope);
  EXPECT_EQ(order, "ab");
}

TEST(AsioTimer, NeverFiresEarly) {
  Reactor reactor;
  const auto start = reactor.timer.now();
  reactor.timer.atTime(start + 5 * kj::MILLISECONDS).wait(reactor.wait_scope);
  EXPECT_GE((reactor.timer.now() - start) / kj::MICROSECONDS, 5000);
}

TEST(AsioTimer, DroppedPromiseLeavesNothingBehind) {
  Reactor reactor;
  bool ran = false;
  for (int i = 0; i < 100; ++i) {
    auto dropped = reactor.timer.afterDelay(0 * kj::MILLISECONDS).then([&] { ran = true; });
    if (i % 2) reactor.ioc.poll();
  }
  reactor.timer.afterDelay(1 * kj::MILLISECONDS).wait(reactor.wait_scope);
  EXPECT_FALSE(ran);
}

TEST(AsioTimer, TimeoutAfterRejectsAsDeadline) {
  Reactor reactor;
  auto late = reactor.timer.timeoutAfter(1 * kj::MILLISECONDS, kj::Promise<void>(kj::NEVER_DONE));
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { late.wait(reactor.wait_scope); })) {
    EXPECT_EQ(toError(*exception).code(), ErrorCode::kDeadline);
  } else {
    FAIL();
  }
}

// Each progress restarts the delay.
TEST(StillDelay, EndsWhenNothingHasMovedForSoLong) {
  dtf::testing::StillLoop loop;
  uint64_t moved = 0;
  bool ended = false;
  auto still = stillDelay(loop.timer(), std::chrono::seconds(8), [&] {
                 return moved;
               }).then([&] {
                   ended = true;
                 }).eagerlyEvaluate(nullptr);
  for (int i = 0; i < 10; ++i) {
    loop.live(std::chrono::seconds(6));
    ++moved;
  }
  EXPECT_FALSE(ended);
  loop.live(std::chrono::seconds(10));
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace dtf::net
