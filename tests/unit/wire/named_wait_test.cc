// The test's clock drives the timer: no test waits.

#include "common/wire/named_wait.h"

#include <gtest/gtest.h>
#include <kj/async.h>

#include "common/net/error_bridge.h"

namespace dtf::wire {

namespace {

struct World {
  kj::EventLoop loop;
  kj::WaitScope scope{loop};
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};

  void advance(kj::Duration by) {
    // In steps of a second, as each report starts the timer of the next one.
    for (const kj::TimePoint until = timer.now() + by; timer.now() < until; scope.poll())
      timer.advanceTo(kj::min(until, timer.now() + 1 * kj::SECONDS));
  }
};

}  // namespace

TEST(NamedWait, EndsAtTheDeadlineWithItsNameAndCode) {
  World world;
  auto waiting =
      awaitNamed(world.timer, {"ps/1 to answer", std::chrono::seconds(10), ErrorCode::kUnavailable},
                 kj::Promise<int>(kj::NEVER_DONE));
  world.advance(9 * kj::SECONDS);
  EXPECT_FALSE(waiting.poll(world.scope));
  world.advance(2 * kj::SECONDS);
  ASSERT_TRUE(waiting.poll(world.scope));
  const auto failure = kj::runCatchingExceptions([&] { waiting.wait(world.scope); });
  KJ_IF_MAYBE (exception, failure) {
    const Error error = net::toError(*exception);
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error.message(), "waited 10 s for ps/1 to answer");
  } else {
    ADD_FAILURE() << "it has not failed";
  }
}

TEST(NamedWait, AnAnswerInTimeIsTheAnswerAndLeavesNoTimer) {
  World world;
  auto answer = kj::newPromiseAndFulfiller<int>();
  auto waiting =
      awaitNamed(world.timer, {"an answer", std::chrono::seconds(10)}, kj::mv(answer.promise));
  world.advance(7 * kj::SECONDS);
  answer.fulfiller->fulfill(42);
  EXPECT_EQ(waiting.wait(world.scope), 42);
  EXPECT_TRUE(world.timer.nextEvent() == nullptr);
}

TEST(NamedWait, AFailureIsPassedOnAtOnce) {
  World world;
  auto waiting =
      awaitNamed(world.timer, {"an answer", std::chrono::seconds(10)},
                 kj::Promise<void>(net::toKj(Error(ErrorCode::kBadConfig, "another job"))));
  ASSERT_TRUE(waiting.poll(world.scope));
  EXPECT_THROW(waiting.wait(world.scope), kj::Exception);
}

}  // namespace dtf::wire
