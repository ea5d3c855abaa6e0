#pragma once

// What an element and its slots must be, to the bit, after any number of updates of which one
// brought its gradient: a reference store says it that is given the same updates.

#include <cstdint>
#include <vector>

#include "tests/sim/plan.h"

namespace dtf::sim {

// Immutable.
class ExpectedCells {
 public:
  // `updates_max`: of the plan's jobs.
  ExpectedCells(const Plan& plan, uint64_t updates_max);

  // [n][u]: after n updates, what the element is whose contribution came with update u < n.
  using Table = std::vector<std::vector<float>>;
  const Table& saved() const { return saved_; }  // as the ps have them, and checkpoints
  const Table& shown() const { return shown_; }  // as workers are given them
  const std::vector<Table>& slots() const { return slots_; }

 private:
  Table saved_;
  Table shown_;
  std::vector<Table> slots_;
};

// `value` as workers are given it.
float shownOf(const Plan& plan, float value);

}  // namespace dtf::sim
