#pragma once

// The chief's supervisor in the simulated cluster: the real Supervisor, Checkpointer,
// CheckpointCalls and files, on the simulated network and disk, saving in a fiber of its own.

#include <kj/async.h>

#include <functional>
#include <memory>
#include <string>

#include "common/train/supervisor.h"
#include "common/wire/checkpoint/checkpoint_calls.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

inline constexpr char kRunDir[] = "/run";
// Where the ps keep their snapshots.
inline constexpr char kHostMemory[] = "/shm";

// Borrows: everything it is given.  Used from the chief's fibers.
class SimSupervisor {
 public:
  struct Hooks {
    std::function<void(const std::string&)> log;
    std::function<void(uint64_t step)> on_saved;
    std::function<void(const train::WentBack&)> on_went_back;
    std::function<void(const Error&)> on_hopeless;
    std::function<void(const checkpoint::GoingBack&)> on_going_back;
    std::function<void(size_t ps)> on_refilled;  // so many, from their replicas
  };

  // `reached_step`: by earlier processes of the chief.
  SimSupervisor(const Environment& environment, const Plan& plan,
                std::optional<uint64_t> reached_step, wire::ControlCalls& calls, net::Loop& loop,
                Hooks hooks);
  ~SimSupervisor() noexcept(false);

  // Nullopt when the ps hold values: from the checkpoint of step restoredStep(), from an earlier
  // chief, or initial ones that were brought. Else the epoch of these: they are due.
  std::optional<uint64_t> begin(const arena::ModelDeclaration& model, Incarnation incarnation,
                                kj::WaitScope& scope);
  std::optional<uint64_t> restoredStep() const {
    if (!checkpointer_->goesOn().resumed) return std::nullopt;
    return checkpointer_->goesOn().resumed->step;
  }

  // From now on checkpoints are saved when they are due. `scope` is the training fiber's.
  void start(const kj::FiberPool& fibers, kj::WaitScope& scope);
  void onPsReplaced();
  void onStep(const replication::StepState& state);
  // When all workers are at rest. False: it could not be written, or the job keeps no checkpoints.
  bool saveAtRest();

 private:
  class Client;
  class Runner;

  const Environment environment_;
  const Plan& plan_;
  const std::optional<uint64_t> reached_step_;
  net::Loop& loop_;
  const Hooks hooks_;
  std::unique_ptr<wire::CheckpointCalls> calls_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<train::Checkpointer> checkpointer_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<train::Supervisor> supervisor_;
  bool replaced_ = false;  // a ps, before supervisor_ was there
};

}  // namespace dtf::sim
