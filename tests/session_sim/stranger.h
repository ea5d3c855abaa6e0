#pragma once

// Somebody who knows a session's secret, as one of its tasks does, and sends it tensors that nobody
// must take: late ones, doubled ones, those of a process that is no more. And somebody who doesn't
// know it.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "tests/session_sim/session_client_sim.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

struct StrangerTally {
  uint32_t late = 0, doubled = 0, dead = 0, uninvited = 0;  // that were sent, and had no effect
};

// Owns: its process, a fiber. Borrows: `environment`, `tally`.
// Threads: one. Made and destroyed from events of the world.
class Stranger {
 public:
  struct Hooks {
    std::function<void(const std::string&)> complain;
    std::function<std::shared_ptr<SessionTrace>()> pick;  // null: there is none now
    std::function<std::optional<Incarnation>()> worker0;  // its process
  };
  Stranger(const Environment& environment, const kj::FiberPool& fibers, StrangerTally& tally,
           Hooks hooks);
  ~Stranger() noexcept(false);

 private:
  void visit(kj::WaitScope& scope);

  const Environment environment_;
  StrangerTally& tally_;
  const Hooks hooks_;
  const ProcessRef process_;
  SimLoop loop_;
  kj::Promise<void> work_ = nullptr;
};

}  // namespace dtf::sim
