#pragma once

// A stranger with a session's secret, which its tasks know, too. It sends tensors that no task may
// take: late ones, doubled ones, and tensors of a dead process. Another stranger lacks the secret.

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
  uint32_t late = 0, doubled = 0, dead = 0, uninvited = 0;  // that were sent without effect
};

// Owns: its process, a fiber. Borrows: `environment`, `tally`.
// Threads: one. Made and destroyed from events of the world.
class Stranger {
 public:
  struct Hooks {
    std::function<void(const std::string&)> complain;
    std::function<std::shared_ptr<SessionTrace>()> pick;  // null: there is none now
    std::function<std::optional<Incarnation>()> worker0;  // worker/0's process
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
