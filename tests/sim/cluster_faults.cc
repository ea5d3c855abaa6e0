// What a plan does to the tasks and their connections.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/ps/replicator.h"
#include "tests/sim/cluster_sim.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;

}  // namespace

// Of this life, from events of any process.
void ClusterSim::applySince(Fault::Since since) {
  if (!reached_.insert(since).second) return;
  for (const Fault& fault : life().faults) {
    if (fault.since != since) continue;
    report_.moments.insert(since);
    afterInThisLife(fault.at, [this, &fault] { apply(fault); });
  }
}

void ClusterSim::apply(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kKillWorker:
      return killWorker(fault.target);
    case Fault::Kind::kKillPs:
      if (!ps_[fault.target]) return;
      log("FAULT " + fault.text());
      ++report_.faults;
      return killPs(fault.target);
    case Fault::Kind::kFreezeWorker:
      return freezeWorker(fault);
    case Fault::Kind::kFreezePs: {
      if (!ps_[fault.target]) return;
      log("FAULT " + fault.text());
      ++report_.faults;
      ps_was_frozen_ = true;
      // Never sooner than another freeze ends: what is held already would be overtaken.
      TimePoint& until = ps_[fault.target]->process()->frozen_until;
      until = std::max(until, scheduler_.now() + fault.length);
      return;
    }
    case Fault::Kind::kCut:
    case Fault::Kind::kSilence: {
      const size_t count = network_.connections();
      if (count == 0) return;
      const size_t index = fault.target % count;
      log(fmt::format("FAULT {}: {}", fault.text(), network_.describe(index)));
      ++report_.faults;
      if (fault.kind == Fault::Kind::kCut) return network_.cut(index);
      return network_.silence(index, fault.length);
    }
    case Fault::Kind::kCutReplica:
    case Fault::Kind::kSilenceReplica:
      return breakReplicaLink(fault);
    case Fault::Kind::kCutWorker:
    case Fault::Kind::kCutPs:
      return cutOff(fault);
    case Fault::Kind::kStop:
      return stop(fault);
    case Fault::Kind::kKillAll:
      log("FAULT " + fault.text());
      ++report_.faults;
      return killAll();
  }
}

void ClusterSim::cutOff(const Fault& fault) {
  const bool is_ps = fault.kind == Fault::Kind::kCutPs;
  if (is_ps ? ps_[fault.target] == nullptr : ranks_[fault.target].alive.empty()) return;
  log("FAULT " + fault.text());
  ++report_.faults;
  network_.cutAll(is_ps ? ps_[fault.target]->process()
                        : ranks_[fault.target].alive.back()->process());
}

void ClusterSim::breakReplicaLink(const Fault& fault) {
  const uint32_t keeper = ps::backupOf(fault.target, plan_.ps_tasks);
  const auto link = network_.find(fmt::format("ps/{}", fault.target), fmt::format("ps/{}", keeper),
                                  net::ConnectionKind::kBulk);
  if (!link) return;
  log("FAULT " + fault.text());
  ++report_.faults;
  if (fault.kind == Fault::Kind::kCutReplica) return network_.cut(*link);
  network_.silence(*link, fault.length);
}

void ClusterSim::killWorker(uint32_t rank) {
  if (ranks_[rank].alive.empty()) return;
  SimWorker& worker = *ranks_[rank].alive.back();
  log("FAULT kill " + worker.process()->name);
  ++report_.faults;
  endWorker(worker, {0, SIGKILL});
}

void ClusterSim::endWorker(SimWorker& worker, launcher::ExitStatus status) {
  const uint32_t rank = worker.rank();
  worker.process()->dead = true;
  network_.killed(worker.process());
  destroy(worker);
  if (launcher_)
    launcher_->onEnded({JobKind::kWorker, rank}, status, std::nullopt);
  else
    startWorkerLater(rank);
  endIfOver();
}

void ClusterSim::killPs(uint32_t index) {
  if (!ps_[index]) return;
  log(fmt::format("ps/{} is killed", index));
  ps_errors_[index] = Error(ErrorCode::kUnavailable, "killed");
  ps_[index]->process()->dead = true;
  network_.killed(ps_[index]->process());
  ps_[index] = nullptr;
  const bool comes_back = launcher_ ? !launcher_->stopping() : plan_.psComeBack();
  if (!comes_back) {
    ps_killed_ = true;
    if (launcher_) launcher_->onEnded({JobKind::kPs, index}, {0, SIGKILL}, std::nullopt);
    return endIfOver();
  }
  ++report_.ps_restarts;
  ps_lost_ = true;
  if (std::none_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps != nullptr; }))
    for (Rank& rank : ranks_)
      for (auto& worker : rank.alive) worker->clearFenced();
  if (launcher_)
    return launcher_->onEnded({JobKind::kPs, index}, {0, SIGKILL}, std::nullopt), endIfOver();
  ++ps_due_;
  const Duration delay = milliseconds(10 + static_cast<int64_t>(random_.below(1500)));
  afterInThisLife(delay, [this, index] {
    --ps_due_;
    ledger_.forgetInitial(index);
    if (!ps_[index]) startPs(index);
    applySince(Fault::Since::kPsIsBack);
  });
}

void ClusterSim::killAll() {
  all_killed_ = true;
  for (Rank& rank : ranks_)
    while (!rank.alive.empty()) {
      rank.alive.back()->process()->dead = true;
      destroy(*rank.alive.back());
    }
  for (uint32_t i = 0; i < ps_.size(); ++i) {
    if (!ps_[i]) continue;
    ps_errors_[i] = Error(ErrorCode::kUnavailable, "killed");
    ps_[i]->process()->dead = true;
    network_.killed(ps_[i]->process());
    ps_[i] = nullptr;
  }
  endIfOver();
}

// Ctrl-C or SIGTERM. Whoever does not train yet, or any more, has nothing to save: when nobody
// does, all end at once.
void ClusterSim::stop(const Fault& fault) {
  log("FAULT " + fault.text());
  ++report_.faults;
  applySince(Fault::Since::kStopped);
  if (launcher_ && fault.successor) return launcher_->onStopRequest();
  std::vector<SimWorker*> training;
  for (Rank& rank : ranks_)
    if (!rank.alive.empty() && rank.alive.back()->training())
      training.push_back(rank.alive.back().get());
  const auto one = [&] { return training[fault.target % training.size()]; };
  const uint32_t rank = training.empty() ? fault.target : one()->rank();
  if (launcher_) return signalTask({JobKind::kWorker, rank}, SIGTERM);
  if (training.empty()) return killAll();
  stopped_ = true;
  if (!fault.successor) return one()->requestStop();
  for (auto& ps : ps_)
    if (ps) ps->signal();
}

// A worker that is frozen for much longer than its lease is fenced when it goes on.
void ClusterSim::freezeWorker(const Fault& fault) {
  Rank& rank = ranks_[fault.target];
  if (rank.alive.empty()) return;
  SimWorker& worker = *rank.alive.back();
  const ProcessRef process = worker.process();
  log(fmt::format("FAULT freeze {} for {:.3f} s{}", process->name, toSeconds(fault.length),
                  fault.successor && !launcher_ ? ", start another meanwhile" : ""));
  ++report_.faults;
  process->frozen_until = std::max(process->frozen_until, scheduler_.now() + fault.length);
  const double lease = plan_.timeouts.lease_seconds;
  // Bytes that were under way for long may keep the lease a while.
  const bool silent = life().has(Fault::Kind::kSilence);
  if (worker.joined() && !silent && toSeconds(fault.length) > lease + 1) {
    scheduler_.at(process->frozen_until - Duration(1), nullptr, [this, process] {
      if (ps_was_frozen_ || ps_lost_ || process->dead) return;
      for (Rank& ranks : ranks_)
        for (auto& other : ranks.alive)
          if (other->process() == process) other->setFenced();
    });
  }
  if (fault.successor && !launcher_ && mayStartWorker(fault.target)) {
    afterInThisLife(fault.length / 2, [this, target = fault.target, number = rank.started++] {
      startWorker(target, number);
    });
  }
}

}  // namespace dtf::sim
