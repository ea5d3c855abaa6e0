#pragma once

// The workers' shares of the examples of a sync step, in a job that reads every example once an
// epoch (cluster/batch_plan.h), and the gradients that a step with backup workers may take.
//
// A step is short if some workers have no examples in it; the last one of an epoch may be. With
// backup workers an empty share is in no set: it arrives first, and would crowd out examples. A
// short step takes the gradients of replicas_to_aggregate workers that have examples, or of all
// such workers that are not given up.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/cluster/batch_plan.h"

namespace dtf::replication {

// In a job of whole batches no step is short, and each batch counts as one example.
// Threads: immutable, hence thread-safe.
class StepShares {
 public:
  // `declaration`: of a sync job.
  StepShares(const arena::ModelDeclaration& declaration, uint32_t workers);

  uint32_t examples(uint64_t step, uint32_t rank, uint32_t batch) const;
  // Returns the examples behind the gradient that `rank` exchanges: with sums by host those of all
  // workers of its host.
  uint32_t pushedExamples(uint64_t step, uint32_t rank, uint32_t batch) const;

  // The methods below serve jobs with backup workers, in which a worker has one batch a step; in
  // any other job every worker counts.
  bool isShort(uint64_t step) const;
  // Whether the gradient of `rank` may be in the set of `step`.
  bool counts(uint64_t step, uint32_t rank) const;
  // Returns the number of workers that count.
  uint32_t counting(uint64_t step) const;
  // Returns the size of the set, where a short step waits only for workers that `may_come`; 0: no
  // such worker has examples.
  uint32_t needed(uint64_t step, const std::function<bool(uint32_t rank)>& may_come) const;
  // Whether ps/0 may have made `step` of these ranks. Only ps/0 tracks which workers are given up.
  bool canBeSet(uint64_t step, const std::vector<uint32_t>& ranks) const;

 private:
  const uint32_t workers_;
  const uint32_t needed_;  // of a step that isn't short
  const uint32_t batches_of_step_;
  const bool has_backups_;
  const std::vector<std::vector<uint32_t>> pushed_;  // see pushedBy()
  const std::optional<cluster::BatchPlan> plan_;     // nullopt: all batches are alike
};

}  // namespace dtf::replication
