#include "common/replication/step_shares.h"

#include <algorithm>
#include <functional>

#include "common/replication/replication_rules.h"

namespace dtf::replication {

namespace {

std::optional<cluster::BatchPlan> planOf(const arena::ModelDeclaration& declaration,
                                         uint32_t workers) {
  const arena::EpochData& data = declaration.epochs;
  if (data.examples == 0) return std::nullopt;
  return epochPlan(declaration.replication, workers, data.examples, data.batch_size);
}

std::vector<std::vector<uint32_t>> pushedByAll(const cluster::ReplicationSpec& spec,
                                               uint32_t workers) {
  std::vector<std::vector<uint32_t>> pushed;
  for (uint32_t rank = 0; rank < workers; ++rank) pushed.push_back(pushedBy(spec, rank));
  return pushed;
}

}  // namespace

StepShares::StepShares(const arena::ModelDeclaration& declaration, uint32_t workers)
    : workers_(workers),
      needed_(declaration.replication.replicas_to_aggregate),
      batches_of_step_(batchesOfOrderStep(declaration.replication, workers)),
      has_backups_(hasBackupWorkers(declaration.replication)),
      pushed_(pushedByAll(declaration.replication, workers)),
      plan_(planOf(declaration, workers)) {}

uint32_t StepShares::examples(uint64_t step, uint32_t rank, uint32_t batch) const {
  if (!plan_) return 1;
  const uint64_t number = cluster::globalBatch(step, batch, rank, workers_, batches_of_step_);
  return static_cast<uint32_t>(plan_->range(number).count);
}

uint32_t StepShares::pushedExamples(uint64_t step, uint32_t rank, uint32_t batch) const {
  uint32_t sum = 0;
  for (const uint32_t each : pushed_.at(rank)) sum += examples(step, each, batch);
  return sum;
}

// The last rank has the fewest examples.
bool StepShares::isShort(uint64_t step) const {
  return has_backups_ && plan_ && examples(step, workers_ - 1, 0) == 0;
}

bool StepShares::counts(uint64_t step, uint32_t rank) const {
  return !isShort(step) || examples(step, rank, 0) > 0;
}

uint32_t StepShares::counting(uint64_t step) const {
  uint32_t counting = 0;
  for (uint32_t rank = 0; rank < workers_; ++rank) counting += counts(step, rank) ? 1 : 0;
  return counting;
}

uint32_t StepShares::needed(uint64_t step,
                            const std::function<bool(uint32_t rank)>& may_come) const {
  if (!isShort(step)) return needed_;
  uint32_t coming = 0;
  for (uint32_t rank = 0; rank < workers_; ++rank)
    coming += counts(step, rank) && may_come(rank) ? 1 : 0;
  return std::min(needed_, coming);
}

bool StepShares::canBeSet(uint64_t step, const std::vector<uint32_t>& ranks) const {
  const bool enough = isShort(step) ? !ranks.empty() && ranks.size() <= needed_  //
                                    : ranks.size() == needed_;
  return enough && std::ranges::adjacent_find(ranks, std::greater_equal{}) == ranks.end() &&
         std::ranges::all_of(ranks,
                             [&](uint32_t rank) { return rank < workers_ && counts(step, rank); });
}

}  // namespace dtf::replication
