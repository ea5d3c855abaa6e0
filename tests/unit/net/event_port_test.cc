#include "common/net/event_port.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "common/net/reactor.h"

namespace dtf::net {
namespace {

TEST(AsioEventPort, KjMayDriveAndAsiosHandlersFulfilItsPromises) {
  Reactor reactor;
  auto paf = kj::newPromiseAndFulfiller<int>();
  asio::post(reactor.ioc, [&] {
    AsioEventPort::Io io(reactor.port);
    paf.fulfiller->fulfill(7);
  });
  EXPECT_EQ(paf.promise.wait(reactor.wait_scope), 7);
}

TEST(AsioEventPort, AsioMayDriveAndKjPromisesRun) {
  Reactor reactor;
  int seen = 0;
  auto task = reactor.timer.afterDelay(1 * kj::MILLISECONDS)
                  .then([&] { seen = 1; })
                  .then([&] {
                    ++seen;
                    reactor.stop();
                  })
                  .eagerlyEvaluate(nullptr);
  reactor.run();
  EXPECT_EQ(seen, 2);
}

TEST(AsioEventPort, ConsequencesOfAHandlerRunWhenItsIoScopeEnds) {
  Reactor reactor;
  auto paf = kj::newPromiseAndFulfiller<void>();
  bool ran = false;
  auto task = paf.promise.then([&] { ran = true; }).eagerlyEvaluate(nullptr);
  asio::post(reactor.ioc, [&] {
    {
      AsioEventPort::Io io(reactor.port);
      paf.fulfiller->fulfill();
      EXPECT_FALSE(ran);
    }
    EXPECT_TRUE(ran);
    reactor.stop();
  });
  reactor.run();
}

// A kj loop that always has more events must not starve Asio.
TEST(AsioEventPort, AnEndlessChainOfKjEventsLeavesRoomForAsio) {
  Reactor reactor;
  bool posted_ran = false;
  std::function<kj::Promise<void>()> spin = [&]() -> kj::Promise<void> {
    if (posted_ran) {
      reactor.stop();
      return kj::READY_NOW;
    }
    return kj::evalLater([&] { return spin(); });
  };
  auto task = spin().eagerlyEvaluate(nullptr);
  asio::post(reactor.ioc, [&] { posted_ran = true; });
  reactor.run();
  EXPECT_TRUE(posted_ran);
}

TEST(AsioEventPort, HooksRunOnceWhenTheQueueIsDrained) {
  Reactor reactor;
  int events = 0, hooks = 0;
  auto task = kj::evalLater([&] {
                ++events;
                reactor.port.whenDrained([&] {
                  ++hooks;
                  EXPECT_EQ(events, 2);
                });
              }).then([&] {
                  ++events;
                }).eagerlyEvaluate(nullptr);
  reactor.timer.afterDelay(2 * kj::MILLISECONDS).wait(reactor.wait_scope);
  EXPECT_EQ(hooks, 1);
}

// kj's own cross-thread fulfillers reach the loop through wake().
TEST(AsioEventPort, WakesForFulfillersOfOtherThreads) {
  Reactor reactor;
  auto paf = kj::newPromiseAndCrossThreadFulfiller<int>();
  auto fulfiller =
      std::make_shared<kj::Own<kj::CrossThreadPromiseFulfiller<int>>>(kj::mv(paf.fulfiller));
  std::thread other([fulfiller] { (*fulfiller)->fulfill(3); });
  EXPECT_EQ(paf.promise.wait(reactor.wait_scope), 3);
  other.join();
}

class Sleeper final : public Polled {
 public:
  bool poll() override { return false; }
  bool beforeSleep() override {
    ++asked;
    if (then) then();
    return true;
  }
  int asked = 0;
  std::function<void()> then;
};

// Each may give up a wait. One after the other, N would take N windows of polling.
TEST(AsioEventPort, AllPolledLearnThatTheLoopSleeps) {
  Reactor reactor;
  Sleeper first, second, third;
  for (Sleeper* each : {&first, &second, &third}) reactor.port.addPolled(*each);
  EXPECT_TRUE(reactor.port.beforeSleep());
  EXPECT_EQ(first.asked + second.asked + third.asked, 3);
  first.then = [&] { reactor.port.removePolled(second); };
  EXPECT_TRUE(reactor.port.beforeSleep());
  EXPECT_EQ(second.asked, 1) << "it is gone";
  EXPECT_EQ(third.asked, 2);
}

TEST(AsioEventPortDeathTest, WaitingOnAStoppedLoopAbortsInsteadOfHanging) {
  EXPECT_DEATH(
      {
        Reactor reactor;
        reactor.stop();
        kj::Promise<void>(kj::NEVER_DONE).wait(reactor.wait_scope);
      },
      "a loop that was stopped");
}

}  // namespace
}  // namespace dtf::net
