#pragma once

// The examples of each batch, and the mean gradient that a step makes of it, for the ledger. It is
// arithmetic of its own: cluster/batch_plan.h and replication/step_{parts,shares}.h are judged by
// it. In a plan without epochs all batches are alike, and have one example.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/cluster/batch_plan.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

// A batch of any process of its rank.
struct BatchName {
  uint32_t rank = 0;
  uint64_t step = 0;
  uint32_t batch = 0;
};

// The factors by which a worker multiplies the gradient of a batch, and its rows of tables.
struct BatchWeights {
  float gradient = 1;
  float rows = 1;
};

// Borrows: `plan`.  Immutable.
class EpochShares {
 public:
  explicit EpochShares(const Plan& plan);

  bool exist() const { return plan_.epochs > 0; }
  // Of that batch in the permutation of its epoch.
  cluster::BatchRange range(const BatchName& batch) const;
  uint64_t examples(const BatchName& batch) const { return exist() ? range(batch).count : 1; }
  // Batches of an async job that are not as large as the others.
  bool hasShortBatches() const { return exist() && plan_.examples % plan_.batch_size != 0; }

  // async: the steps of `rank`; without epochs, all.
  uint64_t part(uint32_t rank) const;

  // sync: how many gradients with examples a step takes, if no worker is given up.
  uint32_t due(uint64_t step) const;
  // Backup workers: some have no examples in that step.
  bool isShort(uint64_t step) const;

  // The gradients with examples that make up an update.
  struct Set {
    uint64_t examples = 0;
    uint32_t gradients = 0;
    uint64_t least = std::numeric_limits<uint64_t>::max();
    uint64_t most = 0;
    void add(uint64_t more);
  };
  // A gradient as its worker computes it, and what it multiplies it by. With that the mean of a
  // whole step has small numbers: in the element of a batch the number of its examples.
  float gradient(bool is_sparse) const;
  BatchWeights weights(const BatchName& batch) const;
  // What `set` makes of the gradient of `batch`, which is in it: in `batch`'s own element.
  float mean(const BatchName& batch, const Set& set, bool is_sparse) const;

 private:
  uint64_t examplesOfGroup(uint64_t group) const;
  bool has(const BatchName& batch) const;

  const Plan& plan_;
  const uint32_t order_;    // batches numbered by a step
  const uint32_t batches_;  // of a group
  const uint64_t full_;     // examples of the largest group
  const uint64_t groups_;   // of an epoch
};

}  // namespace dtf::sim
