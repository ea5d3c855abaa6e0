// A job under dtf-launch: this world carries out the launcher's orders and reports its tasks'
// events.

#include <algorithm>
#include <csignal>

#include "common/base/check.h"
#include "tests/sim/cluster_sim.h"

namespace dtf::sim {

void ClusterSim::beginLaunch() {
  uint32_t processes = 0;
  for (const Rank& rank : ranks_) processes = std::max(processes, rank.first);
  const uint32_t room = plan_.processesMax(life_) - 1 - processes;
  SimLauncher::Hooks hooks;
  hooks.log = [this](const std::string& line) { log(line); };
  hooks.complain = [this](const std::string& what) { complain(what); };
  hooks.start = [this](TaskId id) { startAgain(id); };
  hooks.signal = [this](TaskId id, int number) { signalTask(id, number); };
  hooks.suspended = [this](TaskId id) {
    const SimPs* ps = id.job == JobKind::kPs ? ps_[id.index].get() : hostedBy(id.index);
    const ProcessRef process =
        ps != nullptr ? ps->process() : ranks_[id.index].alive.back()->process();
    return process->frozen_until > scheduler_.now();
  };
  launcher_ = std::make_unique<SimLauncher>(plan_, std::min(plan_.restarts_max, room), scheduler_,
                                            std::move(hooks));
  afterInThisLife(SimLauncher::kTick, [this] { tickLauncher(); });
}

void ClusterSim::tickLauncher() {
  // Passes on the workers that a psd has given up, until the job gets a request to stop.
  for (const auto& ps : ps_) {
    if (!ps || stopped_ || ps->process()->frozen_until > scheduler_.now()) continue;
    const shard::ShardStatus status = ps->status();
    for (uint32_t rank = 0; rank < status.members.size(); ++rank) {
      const replication::Member& member = status.members[rank];
      const uint32_t first = ranks_[rank].first;
      if (member.state == replication::MemberState::kLost && member.incarnation.attempt() > first)
        launcher_->onLost({JobKind::kWorker, rank}, member.incarnation.attempt() - 1 - first);
    }
  }
  launcher_->tick();
  if (launcher_->missed() > 0) ledger_.mayGiveUp();
  endIfOver();
  afterInThisLife(SimLauncher::kTick, [this] { tickLauncher(); });
}

void ClusterSim::startAgain(TaskId id) {
  if (id.job == JobKind::kPs) {
    ledger_.forgetInitial(id.index);
    startPs(id.index);
    return applySince(Fault::Since::kPsIsBack);
  }
  // The ledger has no room for another process of this rank.
  if (!mayStartWorker(id.index)) return launcher_->onStopRequest();
  const std::optional<uint32_t> shard = plan_.shardOf(id.index);
  if (shard) ledger_.forgetInitial(*shard);
  startWorker(id.index, ranks_[id.index].started++);
  if (shard) applySince(Fault::Since::kPsIsBack);
}

// A frozen process handles SIGKILL only.
void ClusterSim::signalTask(TaskId id, int number) {
  DTF_CHECK(number == SIGTERM || number == SIGKILL);
  if (id.job == JobKind::kPs) {
    SimPs* ps = ps_[id.index].get();
    if (ps == nullptr) return;
    if (number == SIGKILL) return killPs(id.index);
    if (ps->process()->frozen_until > scheduler_.now()) return;
    stopped_ = true;
    return ps->signal();
  }
  if (!isThere(id.index)) return;
  if (number == SIGKILL) return endWorker(id.index, {0, SIGKILL});
  if (ranks_[id.index].alive.empty()) return;  // it stays for its shard, stop_seconds at most
  SimWorker& worker = *ranks_[id.index].alive.back();
  if (worker.process()->frozen_until <= scheduler_.now()) signalWorker(worker);
}

// SIGTERM, as in daemons/workerd/worker_status.h.
void ClusterSim::signalWorker(SimWorker& worker) {
  if (!plan_.checkpoints || !worker.hasTrained())
    return endWorker(worker.rank(), {128 + SIGTERM, 0});
  if (!worker.training()) return;  // it is finishing
  stopped_ = true;
  worker.requestStop();
}

}  // namespace dtf::sim
