#include "tests/sim/epoch_shares.h"

#include "common/arena/bfloat16.h"
#include "tests/sim/expected_cells.h"

namespace dtf::sim {

namespace {

float ratio(uint64_t part, uint64_t whole) {
  return static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

EpochShares::EpochShares(const Plan& plan)
    : plan_(plan),
      order_(plan.sync() ? std::max(plan.aggregate, plan.workers) : plan.workers),
      batches_(plan.sync() ? order_ : 1),
      full_(plan.batch_size * batches_),
      groups_(exist() ? (plan.examples + full_ - 1) / full_ : 1) {}

uint64_t EpochShares::examplesOfGroup(uint64_t group) const {
  return std::min(full_, plan_.examples - group % groups_ * full_);
}

// The first shares of a group have the examples that are left over.
cluster::BatchRange EpochShares::range(const BatchName& batch) const {
  const uint64_t number = batch.step * order_ + batch.batch * plan_.workers + batch.rank;
  const uint64_t group = number / batches_, share = number % batches_;
  const uint64_t all = examplesOfGroup(group), each = all / batches_, more = all % batches_;
  return {group / groups_, group % groups_ * full_ + share * each + std::min(share, more),
          each + (share < more ? 1 : 0)};
}

uint64_t EpochShares::part(uint32_t rank) const {
  if (!exist()) return plan_.steps;
  uint64_t part = 0;
  for (uint64_t number = rank; number < plan_.steps; number += plan_.workers) ++part;
  return part;
}

// Backup workers have a batch each, other jobs as many as a step takes.
bool EpochShares::has(const BatchName& batch) const {
  return plan_.hasBackups() || batch.batch * plan_.workers + batch.rank < plan_.aggregate;
}

uint32_t EpochShares::due(uint64_t step) const {
  uint32_t with_examples = 0;
  for (uint32_t rank = 0; rank < plan_.workers; ++rank)
    for (uint32_t batch = 0; batch < plan_.batchesMax(); ++batch)
      if (has({rank, step, batch}) && examples({rank, step, batch}) > 0) ++with_examples;
  return std::min(with_examples, plan_.aggregate);
}

bool EpochShares::isShort(uint64_t step) const {
  return plan_.hasBackups() && examples({plan_.workers - 1, step, 0}) == 0;
}

void EpochShares::Set::add(uint64_t more) {
  examples += more;
  ++gradients;
  least = std::min(least, more);
  most = std::max(most, more);
}

float EpochShares::gradient(bool is_sparse) const {
  if (is_sparse) return -1;
  if (exist()) return -static_cast<float>(full_);
  return plan_.sync() ? -static_cast<float>(plan_.aggregate) : -1;
}

BatchWeights EpochShares::weights(const BatchName& batch) const {
  if (!exist()) return {};
  const uint64_t group =
      (batch.step * order_ + batch.batch * plan_.workers + batch.rank) / batches_;
  return {ratio(examplesOfGroup(group), examplesOfGroup(0)),
          ratio(examples(batch), examples({0, 0, 0}))};
}

// As optimizer/gradient_math.h has it. The gradients of rows are not weighed among each other.
float EpochShares::mean(const BatchName& batch, const Set& set, bool is_sparse) const {
  if (is_sparse) return shownOf(plan_, gradient(true) * weights(batch).rows);
  const float pushed = shownOf(plan_, gradient(false) * weights(batch).gradient);
  if (!plan_.sync() || set.gradients <= 1) return pushed;
  if (set.least == set.most) return pushed / static_cast<float>(set.gradients);
  return pushed * ratio(examples(batch), set.examples);
}

}  // namespace dtf::sim
