#include "launcher/stop_signals.h"

#include <csignal>
#include <iterator>
#include <vector>

#include "tests/unit/launcher/loop_fixture.h"

namespace dtf::launcher {
namespace {

// Restores this process's signal handlers at its end.
class StopSignalsTest : public ::testing::Test {
 protected:
  StopSignalsTest() {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~StopSignalsTest() override {
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
  struct sigaction before_[std::size(kSignals)] = {};
  boost::asio::io_context io_;
  std::vector<int> heard_;
};

TEST_F(StopSignalsTest, EachIsHeardOnTheLoop) {
  std::signal(SIGHUP, SIG_DFL);  // these tests may run under nohup
  const StopSignals signals(io_, [this](int signal) { heard_.push_back(signal); });
  for (const int signal : {SIGTERM, SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
    const size_t before = heard_.size();
    ASSERT_EQ(std::raise(signal), 0);
    runUntil(io_, [&] { return heard_.size() > before; });
    EXPECT_EQ(heard_.back(), signal);
  }
  EXPECT_EQ(heard_.size(), 5u);
}

TEST_F(StopSignalsTest, UnderNohupAHangupIsIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  const StopSignals signals(io_, [this](int signal) { heard_.push_back(signal); });
  std::raise(SIGHUP);
  std::raise(SIGINT);
  runUntil(io_, [&] { return !heard_.empty(); });
  EXPECT_EQ(heard_, std::vector<int>{SIGINT});
}

}  // namespace
}  // namespace dtf::launcher
