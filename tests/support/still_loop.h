#pragma once

// A net::Loop whose time only moves when a test moves it. kj's own event loop belongs to the
// calling thread.

#include <kj/timer.h>

#include <functional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/net/connector.h"
#include "common/net/loop.h"
#include "common/net/message_stream.h"
#include "common/net/timer.h"

namespace dtf::testing {

// Owns: kj's event loop of this thread, the time.
// Threads: made, used and destroyed on one thread; post() from any, as for net::Loop.
class StillLoop final : public net::Loop {
 public:
  using Connect = std::function<kj::Promise<kj::Own<net::MessageStream>>(uint16_t port)>;

  ~StillLoop() noexcept override {}  // net::Loop's may not throw, kj's may

  const Clock& clock() const override { return clock_; }
  kj::Timer& timer() override { return timer_; }
  void post(std::function<void()> fn) override {
    const MutexLock lock(mutex_);
    posted_.push_back(std::move(fn));
  }
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string, uint16_t port,
                                                   net::ConnectOptions options, const net::Limits&,
                                                   std::shared_ptr<net::BufferPool>) override {
    KJ_REQUIRE(on_connect != nullptr, "nobody connects here");
    connecting = options.kind;
    return on_connect(port);
  }
  Connect on_connect;
  net::ConnectionKind connecting{};  // the kind of the connection that on_connect makes

  // Advances the time at once, as for a late loop or a frozen machine: timers fire before the
  // streams are read.
  void pass(Duration time) {
    clock_.advance(time);
    timer_.advanceTo(timer_.now() + net::toKj(time));
    settle();
  }
  // Advances the time in small steps, as for a loop that is awake.
  void live(Duration time) {
    constexpr Duration kStep = std::chrono::milliseconds(50);
    for (Duration lived{0}; lived < time; lived += kStep) pass(kStep);
  }
  // Runs until nothing is left to do.
  void settle() {
    wait_scope_.poll();
    for (auto posted = takePosted(); !posted.empty(); posted = takePosted()) {
      for (const auto& fn : posted) fn();
      wait_scope_.poll();
    }
  }
  // Returns whether no timer is left.
  bool idle() { return timer_.nextEvent() == nullptr; }
  kj::WaitScope& waitScope() { return wait_scope_; }

 private:
  std::vector<std::function<void()>> takePosted() {
    const MutexLock lock(mutex_);
    return std::exchange(posted_, {});
  }

  kj::EventLoop events_;
  kj::WaitScope wait_scope_{events_};
  kj::TimerImpl timer_{kj::origin<kj::TimePoint>()};
  ManualClock clock_;
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ DTF_GUARDED_BY(mutex_);
};

// Another loop of the same thread, which is busy until run().
class BusyLoop final : public net::Loop {
 public:
  explicit BusyLoop(StillLoop& loop) : loop_(loop) {}
  ~BusyLoop() noexcept override {}

  const Clock& clock() const override { return loop_.clock(); }
  kj::Timer& timer() override { return loop_.timer(); }
  void post(std::function<void()> fn) override { posted_.push_back(std::move(fn)); }
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override {
    return loop_.connect(std::move(host), port, std::move(options), limits, std::move(pool));
  }
  size_t postedCount() const { return posted_.size(); }
  void run() {
    for (const auto& fn : std::exchange(posted_, {})) fn();
    loop_.settle();
  }

 private:
  StillLoop& loop_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace dtf::testing
