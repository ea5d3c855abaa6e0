#pragma once

// The exact bits of an element and its slots after any number of updates, one of which brought its
// gradient. They come from a reference store that applies the same updates, each a mean already.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tests/sim/plan.h"

namespace dtf::sim {

// Borrows: `plan`.  Remembers what it has computed: for one thread.
class ExpectedCells {
 public:
  // `updates_max`: of the jobs of `plan`.
  ExpectedCells(const Plan& plan, uint64_t updates_max);

  uint64_t updatesMax() const { return updates_max_; }
  uint32_t slots() const { return slots_; }

  // [n][u]: after n updates, the element to which update u < n contributed.
  using Table = std::vector<std::vector<float>>;
  enum class As : uint8_t { kSaved, kShown };  // ps and checkpoints hold it, workers receive it
  struct Tables {
    Table saved;
    Table shown;
    std::vector<Table> slots;
    const Table& as(As as) const { return as == As::kSaved ? saved : shown; }
  };
  // With that mean gradient, of rows if `is_sparse`.
  const Tables& of(float mean, bool is_sparse) const;

 private:
  Tables tablesOf(float mean, bool is_sparse) const;

  const Plan& plan_;
  const uint64_t updates_max_;
  const uint32_t slots_;
  mutable std::map<std::pair<float, bool>, Tables> known_;
};

// Returns `value` as workers receive it.
float shownOf(const Plan& plan, float value);

}  // namespace dtf::sim
