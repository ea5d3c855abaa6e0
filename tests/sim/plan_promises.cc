// Settings of a plan's cluster, and the promises that can be expected of it.

#include <algorithm>
#include <set>

#include "common/arena/parameter_layout.h"
#include "common/replication/replicator.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

cluster::Timeouts planTimeouts() {
  cluster::Timeouts timeouts;
  timeouts.start_seconds = 20;
  timeouts.heartbeat_seconds = 0.5;
  timeouts.lease_seconds = 2;
  timeouts.step_seconds = 15;
  timeouts.finish_seconds = 30;
  return timeouts;
}

uint32_t Plan::batchesMax() const {
  return aggregate <= workers ? 1 : (aggregate + workers - 1) / workers;
}

arena::ModelDeclaration Plan::model(uint64_t elements) const {
  arena::ModelDeclaration model;
  std::vector<arena::VariableParts> variables;
  for (uint32_t ps = 0; ps < shards(); ++ps)
    variables.push_back({"v" + std::to_string(ps),
                         Shape{static_cast<int64_t>(elements)},
                         {{ps, 0, elements}},
                         std::nullopt,
                         isSparse(ps)});
  model.layout = arena::makeLayout(variables, shards());
  model.optimizer = optimizer;
  if (sync()) model.replication = {cluster::ReplicationSpec::Mode::kSync, aggregate, workers};
  if (bounded())
    model.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded, .staleness = staleness};
  model.replication.overlap = overlaps();
  if (narrows)
    model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  model.steps = steps;
  if (epochs > 0) model.epochs = {examples, batch_size};
  return model;
}

bool Life::has(Fault::Kind kind) const {
  return std::any_of(faults.begin(), faults.end(),
                     [kind](const Fault& fault) { return fault.kind == kind; });
}

bool Plan::undisturbed(const Life& life) const {
  return life.faults.empty() && !early_timeouts && early_echo_share == 0;
}

bool Plan::mustFinish(const Life& life) const {
  // No worker is started again in a job that is being stopped, so the loss or fencing of one ends
  // it.
  const bool stops_well = std::all_of(life.faults.begin(), life.faults.end(), [](const Fault& f) {
    return f.kind == Fault::Kind::kStop || f.kind == Fault::Kind::kKillPs || f.isOfReplica();
  });
  const bool ps_mended = psComeBack() && disk_error_share == 0;
  const bool loses_shards = std::any_of(life.faults.begin(), life.faults.end(),
                                        [this](const Fault& fault) { return mayLoseShard(fault); });
  return !early_timeouts && (ps_mended || !loses_shards) && !life.has(Fault::Kind::kKillAll) &&
         (stops_well || !life.has(Fault::Kind::kStop));
}

bool Plan::onlyWorkersAreKilled(const Life& life) const {
  return !workers_host && !early_timeouts && early_echo_share == 0 &&
         std::all_of(life.faults.begin(), life.faults.end(),
                     [](const Fault& fault) { return fault.kind == Fault::Kind::kKillWorker; });
}

bool Plan::onlyPsAreKilled(const Life& life) const {
  return psComeBack() && disk_error_share == 0 && !early_timeouts && early_echo_share == 0 &&
         std::all_of(life.faults.begin(), life.faults.end(), [this](const Fault& fault) {
           const bool kills_host = fault.kind == Fault::Kind::kKillPs ||
                                   (workers_host && fault.kind == Fault::Kind::kKillWorker);
           return kills_host || fault.isOfReplica();
         });
}

TaskId Plan::host(uint32_t shard) const {
  if (shard < ps_tasks) return {JobKind::kPs, shard};
  return {JobKind::kWorker, shard - ps_tasks};
}

std::optional<uint32_t> Plan::shardOf(uint32_t rank) const {
  if (!workers_host) return std::nullopt;
  return ps_tasks + rank;
}

// The loss of a worker is that of its shard, and a lost connection may be the loss of a worker.
bool Plan::mayLoseShard(const Fault& fault) const {
  if (workers_host) return fault.kind != Fault::Kind::kStop && !fault.isOfReplica();
  return fault.kind == Fault::Kind::kKillPs;
}

// Each update counts when two hosts have it. So two steps after a loss all replicas are whole: of
// the first of them some shards may have been updated before the loss.
bool Plan::keepsReplicas(const Life& life) const {
  std::set<uint32_t> lost_first, lost_later;
  for (const Fault& fault : life.faults) {
    std::set<uint32_t>& lost = fault.since == Fault::Since::kTrainsOn ? lost_later : lost_first;
    const bool is_of_ps =
        fault.kind == Fault::Kind::kKillPs || fault.kind == Fault::Kind::kFreezePs;
    const bool is_of_worker =
        fault.kind == Fault::Kind::kKillWorker || fault.kind == Fault::Kind::kFreezeWorker;
    if (is_of_ps) lost.insert(fault.target);
    if (is_of_worker && workers_host) lost.insert(*shardOf(fault.target));
  }
  const auto are_apart = [this](const std::set<uint32_t>& lost) {
    return std::none_of(lost.begin(), lost.end(), [&](uint32_t shard) {
      return lost.contains(replication::backupOf(shard, shards()));
    });
  };
  return replicas && are_apart(lost_first) && are_apart(lost_later);
}

// Replicas alone don't outlive two hosts that die together if one keeps the other's replica.
bool Plan::mustEndWell(const Life& life) const {
  return isOfTheEnd() && launched && (!replicas || checkpoints || keepsReplicas(life));
}

bool Plan::isCalm(const Life& life) const {
  return !early_timeouts && life.faults.empty();
}

bool Plan::losesNothing(const Life& life) const {
  return onlyPsAreKilled(life) && keepsReplicas(life);
}

}  // namespace dtf::sim
