// Jobs without ps: the process of a worker is a SimWorker and the SimPs of its shard, which start,
// freeze and die together.

#include <fmt/format.h>

#include <chrono>

#include "tests/sim/cluster_sim.h"

namespace dtf::sim {

namespace {

// Whether a service manager starts a process again that ended so.
bool isWorthRestarting(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadline;
}

}  // namespace

SimPs* ClusterSim::hostedBy(uint32_t rank) {
  const std::optional<uint32_t> shard = plan_.shardOf(rank);
  return shard ? ps_[*shard].get() : nullptr;
}

bool ClusterSim::isThere(uint32_t rank) {
  return !ranks_[rank].alive.empty() || hostedBy(rank) != nullptr;
}

// Starts the process of a worker by hand, at first or again.
void ClusterSim::startWorkerAfter(Duration delay, uint32_t rank) {
  const std::optional<uint32_t> shard = plan_.shardOf(rank);
  if (shard) ++ps_due_;
  afterInThisLife(delay, [this, rank, shard, number = ranks_[rank].started++] {
    if (shard) --ps_due_;
    if (shard && ps_lost_) ledger_.forgetInitial(*shard);
    startWorker(rank, number);
    if (shard && ps_lost_) applySince(Fault::Since::kPsIsBack);
  });
}

// Mirrors WorkerServer: a worker that has done its part stays for its shard, one that has failed
// does not.
void ClusterSim::onHostTrained(uint32_t rank, const std::optional<Error>& error) {
  if (error)
    endHost(rank, error);
  else if (hostedBy(rank)->ended())
    onHostedShardEnded(rank);
}

void ClusterSim::onHostedShardEnded(uint32_t rank) {
  if (!ranks_[rank].alive.empty()) return;  // its calls to the shard fail with the shard's error
  SimPs& ps = *hostedBy(rank);
  const std::optional<Error> error = ps.error();
  judgeEnd(ps);
  endHost(rank, error);
}

// The process ends by itself; its worker is gone already.
void ClusterSim::endHost(uint32_t rank, const std::optional<Error>& error) {
  const uint32_t shard = *plan_.shardOf(rank);
  log(fmt::format("the process of worker/{} ends{}", rank, error ? ": " + error->message() : ""));
  const ProcessRef process = ps_[shard]->process();
  ps_errors_[shard] = error;
  ps_[shard] = nullptr;
  network_.killed(process);
  process->dead = true;
  if (error) noteLost();
  if (launcher_) {
    launcher_->onEnded({JobKind::kWorker, rank}, {error ? exitCode(error->code()) : 0, 0}, error);
  } else if (error && isWorthRestarting(*error)) {
    startWorkerLater(rank);
  } else if (error) {
    ps_killed_ = true;
  }
  endIfOver();
}

// The process is killed, with its shard.
void ClusterSim::killHosted(uint32_t rank) {
  const std::optional<uint32_t> shard = plan_.shardOf(rank);
  if (!shard || !ps_[*shard]) return;
  dropKilled(*shard);
  noteLost();
}

}  // namespace dtf::sim
