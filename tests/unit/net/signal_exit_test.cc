#include "common/net/signal_exit.h"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <vector>

namespace dtf::net {
namespace {

// Sends itself signals, and runs the loop until it has been called `calls` times.
struct Signalled {
  void sendAndRun(int number, size_t calls) {
    expected = calls;
    std::raise(number);
    reactor.ioc.restart();
    reactor.run();
  }
  Reactor reactor;
  size_t expected = 0;
  std::vector<int> seen;
  std::optional<SignalExit> signals{std::in_place, reactor, [this](int number) {
                                      seen.push_back(number);
                                      if (seen.size() >= expected) reactor.stop();
                                    }};
};

TEST(SignalExit, CallsForTheSignalsThatEndAProcess) {
  Signalled process;
  process.sendAndRun(SIGTERM, 1);
  process.sendAndRun(SIGINT, 2);
  EXPECT_EQ(process.seen, (std::vector<int>{SIGTERM, SIGINT}));
}

TEST(SignalExit, TakesASecondSigtermForTheSameRequest) {
  Signalled process;
  process.sendAndRun(SIGTERM, 1);
  std::raise(SIGTERM);
  process.sendAndRun(SIGINT, 2);  // arrives behind it
  EXPECT_EQ(process.seen, (std::vector<int>{SIGTERM, SIGINT}));
}

TEST(SignalExit, GivesTheSignalsTheirDefaultEffectBack) {
  Signalled process;
  process.signals.reset();
  for (const int number : {SIGTERM, SIGINT}) {
    struct sigaction now {};
    ASSERT_EQ(sigaction(number, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << number;
  }
}

TEST(SignalExit, GivesTheProgramsOwnHandlersBackWithTheLastObject) {
  struct sigaction before {
  }, own{}, now{};
  own.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGTERM, &own, &before), 0);
  {
    Signalled process;
    const SignalExit second(process.reactor, [&](int number) {
      process.seen.push_back(number);
      process.reactor.stop();
    });
    process.signals.reset();
    process.sendAndRun(SIGTERM, 1);
    EXPECT_EQ(process.seen, std::vector<int>{SIGTERM}) << "the first has not taken it along";
  }
  ASSERT_EQ(sigaction(SIGTERM, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, own.sa_handler);
}

}  // namespace
}  // namespace dtf::net
