#pragma once

// The chief's supervisor in the simulated cluster: the real Checkpointer, CheckpointCalls and
// files, on the simulated network and disk, in a fiber of its own.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <string>

#include "common/train/checkpointer.h"
#include "common/wire/checkpoint_calls.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

inline constexpr char kRunDir[] = "/run";

// Borrows: everything it is given.  Used from the chief's fibers.
class SimSupervisor {
 public:
  struct Hooks {
    std::function<void(const std::string&)> log;
    std::function<void(uint64_t step)> on_saved;
  };

  SimSupervisor(const Environment& environment, const Plan& plan, wire::ControlCalls& calls,
                net::Loop& loop, Hooks hooks);
  ~SimSupervisor() noexcept(false);

  // True when the ps hold values, from a checkpoint or from an earlier chief.
  bool restore(const ps::ModelDeclaration& model, Incarnation incarnation, kj::WaitScope& scope);

  // Saves now and then until stop().
  void start(const kj::FiberPool& fibers);
  void stop(kj::WaitScope& scope);
  void saveAtRest(kj::WaitScope& scope);

 private:
  class Client;
  void save(train::Motion motion);

  const Environment environment_;
  const Plan& plan_;
  net::Loop& loop_;
  const Hooks hooks_;
  std::unique_ptr<wire::CheckpointCalls> calls_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<train::Checkpointer> checkpointer_;
  bool stopping_ = false;
  kj::Promise<void> saving_ = nullptr;
};

}  // namespace dtf::sim
