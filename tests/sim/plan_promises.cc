// What a plan's cluster is told, and what may be expected of it.

#include <algorithm>
#include <set>

#include "common/ps/parameter_layout.h"
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

ps::ModelDeclaration Plan::model(uint64_t elements) const {
  ps::ModelDeclaration model;
  std::vector<ps::VariableParts> variables;
  for (uint32_t ps = 0; ps < ps_tasks; ++ps)
    variables.push_back({"v" + std::to_string(ps),
                         Shape{static_cast<int64_t>(elements)},
                         {{ps, 0, elements}},
                         std::nullopt,
                         sparse});
  model.layout = ps::makeLayout(variables, ps_tasks);
  model.optimizer = optimizer;
  if (sync()) model.replication = {cluster::ReplicationSpec::Mode::kSync, aggregate, workers};
  if (bounded())
    model.replication = {.mode = cluster::ReplicationSpec::Mode::kBounded, .staleness = staleness};
  model.replication.overlap = overlaps();
  if (narrows)
    model.replication.transfer_dtype = cluster::ReplicationSpec::TransferDtype::kBFloat16;
  model.steps = steps;
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
  // In a job that is being stopped no worker is started again, so one that is lost or fenced ends
  // it.
  const bool stops_well = std::all_of(life.faults.begin(), life.faults.end(), [](const Fault& f) {
    return f.kind == Fault::Kind::kStop || f.kind == Fault::Kind::kKillPs || f.isOfReplica();
  });
  const bool ps_mended = psComeBack() && disk_error_share == 0;
  return !early_timeouts && (ps_mended || !life.has(Fault::Kind::kKillPs)) &&
         !life.has(Fault::Kind::kKillAll) && (stops_well || !life.has(Fault::Kind::kStop));
}

bool Plan::onlyWorkersAreKilled(const Life& life) const {
  return !early_timeouts && early_echo_share == 0 &&
         std::all_of(life.faults.begin(), life.faults.end(),
                     [](const Fault& fault) { return fault.kind == Fault::Kind::kKillWorker; });
}

bool Plan::onlyPsAreKilled(const Life& life) const {
  return psComeBack() && disk_error_share == 0 && !early_timeouts && early_echo_share == 0 &&
         std::all_of(life.faults.begin(), life.faults.end(), [](const Fault& fault) {
           return fault.kind == Fault::Kind::kKillPs || fault.isOfReplica();
         });
}

// Replicas alone don't outlive two ps that die together.
bool Plan::mustEndWell(const Life& life) const {
  std::set<uint32_t> lost;
  for (const Fault& fault : life.faults)
    if (fault.kind == Fault::Kind::kKillPs || fault.kind == Fault::Kind::kFreezePs)
      lost.insert(fault.target);
  return isOfTheEnd() && launched && !(replicas && !checkpoints && lost.size() > 1);
}

bool Plan::isCalm(const Life& life) const {
  return !early_timeouts && life.faults.empty();
}

bool Plan::losesNothing(const Life& life) const {
  const auto kills = std::count_if(life.faults.begin(), life.faults.end(),
                                   [](const Fault& fault) { return !fault.isOfReplica(); });
  return replicas && onlyPsAreKilled(life) && kills <= 1;
}

}  // namespace dtf::sim
