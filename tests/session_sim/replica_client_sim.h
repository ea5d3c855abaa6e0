#pragma once

// One client process of a training by synchronous replicas: a real supervisor with real sessions,
// in a fiber.

#include <kj/async.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/engine/session.h"
#include "common/runtime/kernel.h"
#include "common/train/graph_supervisor.h"
#include "tests/session_sim/replica_values.h"
#include "tests/session_sim/replicas_plan.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

// The events of one client, in all of its processes.
struct ReplicaTally {
  uint32_t processes = 0;
  uint32_t sessions = 0;
  uint32_t steps = 0;      // that ended well
  uint32_t dropped = 0;    // of these: without this client's gradient
  uint32_t recovered = 0;  // steps after which the supervisor opened its session anew
};

// The program: it trains as common/api/examples/sync_replicas.cc does.
// Owns: the process's supervisor, its sessions, a fiber. Borrows: everything it is given.
// Threads: one. Made and destroyed from events of the world.
class ReplicaClientSim {
 public:
  struct End {
    std::optional<Error> failed;  // none: it ended with 0
    bool has_crashed = false;     // within an operation of its disk
  };
  struct Hooks {
    std::function<void(const std::string&)> log, complain;
    std::function<void(ReplicaClientSim&, const End&)> on_ended;  // an event of the world
  };

  ReplicaClientSim(const Environment& environment, const ReplicasPlan& plan,
                   const runtime::KernelTable& kernels, const kj::FiberPool& fibers, uint32_t rank,
                   ReplicaTally& tally, Hooks hooks);
  ~ReplicaClientSim() noexcept(false);

  uint32_t rank() const { return rank_; }
  const ProcessRef& process() const { return process_; }

 private:
  End work(kj::WaitScope& scope);
  void train(kj::WaitScope& scope);
  int64_t trainTo(train::GraphSupervisor& supervisor, const ReplicaGraph& replica,
                  kj::WaitScope& scope);
  std::optional<int64_t> takeStep(train::GraphSupervisor& supervisor, const ReplicaGraph& replica,
                                  int64_t step);
  std::shared_ptr<engine::Session> open(const graph::Graph& graph, kj::WaitScope& scope);
  train::GraphSupervisorOptions options(kj::WaitScope& scope);
  void wait(kj::WaitScope& scope, TimePoint until);

  const Environment environment_;
  const ReplicasPlan& plan_;
  const runtime::KernelTable& kernels_;
  const uint32_t rank_;
  ReplicaTally& tally_;
  const Hooks hooks_;
  const Incarnation incarnation_;
  const ProcessRef process_;
  SimLoop loop_;
  kj::Promise<void> work_ = nullptr;
};

// The folder of the training's checkpoints, on the world's disk.
inline constexpr char kReplicasRun[] = "/run";

}  // namespace dtf::sim
