#pragma once

// The loop of a fuzzed program: its time moves by the program's calls, its turns run on demand.

#include <deque>
#include <functional>

#include "common/net/reactor.h"
#include "tests/fuzz/manual_time.h"

namespace dtf::fuzz {

// A Loop without its connections.
// Owns: its time, and the posted functions that have not run.
// Borrows: `reactor` (must outlive this): runs its kj loop, and its sockets if there are some.
// Threads: one, post() too.
class FuzzLoop : public net::Loop {
 public:
  FuzzLoop(net::Reactor& reactor, bool has_sockets)
      : reactor_(reactor), has_sockets_(has_sockets) {}
  ~FuzzLoop() noexcept override = default;

  const Clock& clock() const override { return time_.clock(); }
  kj::Timer& timer() override { return time_.timer(); }
  void post(std::function<void()> fn) override;

  ManualTime& time() { return time_; }
  net::Reactor& reactor() { return reactor_; }
  bool hasSockets() const { return has_sockets_; }

  // Runs everything that can run now, up to kTurnsMax turns. Polls Asio only for sockets: its
  // system calls would take as long as a small input.
  void settle();

 private:
  static constexpr int kTurnsMax = 16;
  bool runPosted();

  net::Reactor& reactor_;
  const bool has_sockets_;
  ManualTime time_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace dtf::fuzz
