// A job under dtf-launch: what it orders is carried out here, and it hears what its tasks tell it.

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
    const bool is_ps = id.job == JobKind::kPs;
    const ProcessRef process =
        is_ps ? ps_[id.index]->process() : ranks_[id.index].alive.back()->process();
    return process->frozen_until > scheduler_.now();
  };
  launcher_ = std::make_unique<SimLauncher>(plan_, std::min(plan_.restarts_max, room), scheduler_,
                                            std::move(hooks));
  afterInThisLife(SimLauncher::kTick, [this] { tickLauncher(); });
}

void ClusterSim::tickLauncher() {
  // What a psd says of workers that it has given up, as long as nobody has asked for the end.
  for (const auto& ps : ps_) {
    if (!ps || stopped_ || ps->process()->frozen_until > scheduler_.now()) continue;
    const ps::ShardStatus status = ps->status();
    for (uint32_t rank = 0; rank < status.members.size(); ++rank) {
      const ps::Member& member = status.members[rank];
      const uint32_t first = ranks_[rank].first;
      if (member.state == ps::MemberState::kLost && member.incarnation.attempt() > first)
        launcher_->onLost({JobKind::kWorker, rank}, member.incarnation.attempt() - 1 - first);
    }
  }
  launcher_->tick();
  endIfOver();
  afterInThisLife(SimLauncher::kTick, [this] { tickLauncher(); });
}

void ClusterSim::startAgain(TaskId id) {
  if (id.job == JobKind::kPs) {
    ledger_.forgetInitial(id.index);
    startPs(id.index);
    return applySince(Fault::Since::kPsIsBack);
  }
  // The ledger has no room for what another process would do.
  if (!mayStartWorker(id.index)) return launcher_->onStopRequest();
  startWorker(id.index, ranks_[id.index].started++);
}

// Who is frozen hears nothing but SIGKILL.
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
  if (ranks_[id.index].alive.empty()) return;
  SimWorker& worker = *ranks_[id.index].alive.back();
  if (number == SIGKILL) return endWorker(worker, {0, SIGKILL});
  if (worker.process()->frozen_until <= scheduler_.now()) signalWorker(worker);
}

// SIGTERM, as daemons/workerd/worker_status.h has it.
void ClusterSim::signalWorker(SimWorker& worker) {
  if (!plan_.checkpoints || !worker.hasTrained()) return endWorker(worker, {128 + SIGTERM, 0});
  if (!worker.training()) return;  // it is finishing
  stopped_ = true;
  worker.requestStop();
}

}  // namespace dtf::sim
