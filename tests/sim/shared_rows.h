#pragma once

// Rows that several workers name in one update, in plans with sparse variables. Each must hold the
// mean over the workers that name it, update by update.

#include <cstdint>
#include <map>
#include <vector>

#include "tests/sim/epoch_shares.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

// Borrows: `plan`, `shares`.
class SharedRows {
 public:
  SharedRows(const Plan& plan, const EpochShares& shares) : plan_(plan), shares_(shares) {}

  // The cells of an arena: the first is named by every push, the second by some.
  static constexpr uint32_t kFirst = 1, kCount = 2;

  // The origin of a gradient; its process does not matter.
  using Source = BatchName;
  // Whether what they must hold is known. In async mode the order of updates isn't: so all pushes
  // have one value in the first row, unless they are weighed, and the second row has none.
  bool areKnown() const { return plan_.sparse && (plan_.sync() || !shares_.hasShortBatches()); }
  // Whether the push names shared row `index`, and its value there, before weights.
  bool isNamed(const Source& source, uint32_t index) const;
  float gradientOf(const Source& source) const;

  // State after an update from each of these sets.
  struct State {
    float value = 0;
    std::vector<float> slots;
  };
  const State& after(const std::vector<std::vector<Source>>& updates, uint32_t index);

 private:
  float meanOf(const std::vector<Source>& update, uint32_t index) const;
  State replay(const std::vector<float>& means) const;

  const Plan& plan_;
  const EpochShares& shares_;
  std::map<std::vector<float>, State> known_;  // by the mean of each update, 0: the row isn't named
};

}  // namespace dtf::sim
