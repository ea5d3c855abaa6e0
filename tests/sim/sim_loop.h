#pragma once

// net::Loop on virtual time and the simulated network.

#include "common/base/file_system.h"
#include "common/net/loop.h"
#include "tests/sim/network.h"
#include "tests/sim/scheduler.h"

namespace dtf::sim {

// The world that every simulated task runs in.
struct Environment {
  Scheduler& scheduler;
  Network& network;
  Random& random;
  FileSystem& disk;  // the one that all tasks share
};

// One loop of one process.
// Borrows: the parts of `environment`.
class SimLoop final : public net::Loop {
 public:
  SimLoop(const Environment& environment, ProcessRef process)
      : environment_(environment),
        process_(std::move(process)),
        timer_(environment.scheduler, process_) {}

  const Clock& clock() const override { return environment_.scheduler; }
  SimTimer& timer() override { return timer_; }
  void post(std::function<void()> fn) override;
  kj::Promise<kj::Own<net::MessageStream>> connect(std::string host, uint16_t port,
                                                   net::ConnectOptions options,
                                                   const net::Limits& limits,
                                                   std::shared_ptr<net::BufferPool> pool) override;

  const ProcessRef& process() const { return process_; }

 private:
  struct Attempts;
  kj::Promise<kj::Own<net::MessageStream>> attempt(std::shared_ptr<Attempts> attempts);

  const Environment environment_;
  const ProcessRef process_;
  SimTimer timer_;
  TimePoint last_post_{};
};

}  // namespace dtf::sim
