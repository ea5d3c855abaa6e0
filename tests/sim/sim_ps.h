#pragma once

// One ps process of the simulated cluster, or the shard of a worker without ps: the real PsServer
// on simulated loops.

#include <memory>
#include <optional>

#include "common/host/ps_server.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_loop.h"

namespace dtf::sim {

// The job that the cluster file of this plan would describe.
cluster::JobSpec jobOf(const Plan& plan);

// Owns: the server.
// Borrows: `environment`, `plan`.  Made and destroyed from events of the world.
class SimPs {
 public:
  // `attempt`: 1 for the first process; dtf-launch alone passes it, and `finished_workers`.
  // `on_ended` is called from an event of the world, once. `on_update` is called as each update of
  // a plan with slow ones begins.
  SimPs(const Environment& environment, const Plan& plan, uint32_t index, uint32_t attempt,
        std::vector<uint32_t> finished_workers, std::function<void(SimPs&)> on_ended,
        std::function<void()> on_update);
  ~SimPs() noexcept(false);

  uint32_t index() const { return index_; }
  const ProcessRef& process() const { return process_; }
  shard::ShardStatus status() { return server_->host().shard().status(); }
  checkpoint::HeldValues held() { return server_->host().shard().held(); }
  // The shard has done its part in the job, or has failed.
  bool ended() const { return ended_; }
  // SIGTERM.
  void signal() { server_->onSignal(15); }
  // After it has ended: the reason of a failure.
  std::optional<Error> error() const;
  int exitCode() const;

 private:
  void onConnection(Network::Stream stream, net::ConnectionKind kind, const std::string& peer);

  const Environment environment_;
  const uint32_t index_;
  const ProcessRef process_;
  SimLoop control_;
  SimLoop data_;
  const std::unique_ptr<FileSystem>
      own_disk_;  // of a host that doesn't have the chief's; else null
  std::unique_ptr<host::PsServer> server_;
  bool ended_ = false;
};

}  // namespace dtf::sim
