// Applies a plan's faults to the tasks and their connections.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "common/replication/replicator.h"
#include "tests/sim/cluster_sim.h"

namespace dtf::sim {

namespace {

using std::chrono::milliseconds;

}  // namespace

// Applies the faults of this life that begin at `since`, an event of any process.
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
      return freezePs(*ps_[fault.target], fault.length);
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

void ClusterSim::freezePs(SimPs& ps, Duration length) {
  ps_was_frozen_ = true;
  // Never earlier than the end of another freeze: new events would overtake the held ones.
  TimePoint& until = ps.process()->frozen_until;
  until = std::max(until, scheduler_.now() + length);
}

void ClusterSim::cutOff(const Fault& fault) {
  const bool is_ps = fault.kind == Fault::Kind::kCutPs;
  if (is_ps ? ps_[fault.target] == nullptr : !isThere(fault.target)) return;
  log("FAULT " + fault.text());
  ++report_.faults;
  if (is_ps) return network_.cutAll(ps_[fault.target]->process());
  if (SimPs* hosted = hostedBy(fault.target)) network_.cutAll(hosted->process());
  if (!ranks_[fault.target].alive.empty())
    network_.cutAll(ranks_[fault.target].alive.back()->process());
}

void ClusterSim::breakReplicaLink(const Fault& fault) {
  const uint32_t keeper = replication::backupOf(fault.target, plan_.shards());
  const auto link = network_.find(fmt::format("ps/{}", fault.target), fmt::format("ps/{}", keeper),
                                  net::ConnectionKind::kBulk);
  if (!link) return;
  log("FAULT " + fault.text());
  ++report_.faults;
  if (fault.kind == Fault::Kind::kCutReplica) return network_.cut(*link);
  network_.silence(*link, fault.length);
}

void ClusterSim::killWorker(uint32_t rank) {
  if (!isThere(rank)) return;
  log(fmt::format("FAULT kill worker/{}.{}", rank, ranks_[rank].newest));
  ++report_.faults;
  endWorker(rank, {0, SIGKILL});
}

// Ends its newest process.
void ClusterSim::endWorker(uint32_t rank, launcher::ExitStatus status) {
  if (plan_.givesUpParts()) ledger_.mayGiveUp();
  if (!ranks_[rank].alive.empty()) {
    SimWorker& worker = *ranks_[rank].alive.back();
    worker.process()->dead = true;
    network_.killed(worker.process());
    destroy(worker);
  }
  killHosted(rank);
  if (launcher_)
    launcher_->onEnded({JobKind::kWorker, rank}, status, std::nullopt);
  else
    startWorkerLater(rank);
  endIfOver();
}

void ClusterSim::killPs(uint32_t index) {
  if (!ps_[index]) return;
  log(fmt::format("ps/{} is killed", index));
  dropKilled(index);
  const bool comes_back = launcher_ ? !launcher_->stopping() : plan_.psComeBack();
  if (!comes_back) {
    ps_killed_ = true;
    if (launcher_) launcher_->onEnded({JobKind::kPs, index}, {0, SIGKILL}, std::nullopt);
    return endIfOver();
  }
  noteLost();
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

void ClusterSim::dropKilled(uint32_t index) {
  ps_errors_[index] = Error(ErrorCode::kUnavailable, "killed");
  ps_[index]->process()->dead = true;
  network_.killed(ps_[index]->process());
  ps_[index] = nullptr;
}

// A shard has lost its values, and is to be started again.
void ClusterSim::noteLost() {
  ++report_.ps_restarts;
  if (!ps_lost_) lost_at_ = ledger_.furthestStep();
  ps_lost_ = true;
  if (somebody_finished_) ledger_.mayGiveUp();
  if (std::any_of(ps_.begin(), ps_.end(), [](const auto& ps) { return ps != nullptr; })) return;
  for (Rank& rank : ranks_)
    for (auto& worker : rank.alive) worker->clearFenced();
}

void ClusterSim::killAll() {
  all_killed_ = true;
  for (Rank& rank : ranks_)
    while (!rank.alive.empty()) {
      rank.alive.back()->process()->dead = true;
      destroy(*rank.alive.back());
    }
  for (uint32_t i = 0; i < ps_.size(); ++i) {
    if (ps_[i]) dropKilled(i);
  }
  endIfOver();
}

// Ctrl-C or SIGTERM. A worker that has not begun to train, or is done, has nothing to save. If no
// worker trains, all end at once.
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
  if (!isThere(fault.target)) return;
  log(fmt::format("FAULT freeze worker/{}.{} for {:.3f} s{}", fault.target, rank.newest,
                  toSeconds(fault.length),
                  fault.successor && !launcher_ ? ", start another meanwhile" : ""));
  ++report_.faults;
  if (SimPs* hosted = hostedBy(fault.target)) freezePs(*hosted, fault.length);
  if (rank.alive.empty()) return;
  SimWorker& worker = *rank.alive.back();
  const ProcessRef process = worker.process();
  process->frozen_until = std::max(process->frozen_until, scheduler_.now() + fault.length);
  const double lease = plan_.timeouts.lease_seconds;
  // Bytes that were long under way may keep the lease alive for a while.
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
