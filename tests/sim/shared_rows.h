#pragma once

// Rows that several workers name in one update, in plans with sparse variables: what they must hold
// is the mean over those that name them, update by update.

#include <cstdint>
#include <map>
#include <vector>

#include "tests/sim/plan.h"

namespace dtf::sim {

// Borrows: `plan`.
class SharedRows {
 public:
  explicit SharedRows(const Plan& plan) : plan_(plan) {}

  // The cells of an arena: the first is named by every push, the second by some.
  static constexpr uint32_t kFirst = 1, kCount = 2;

  // Whose gradient it is doesn't matter otherwise.
  struct Source {
    uint32_t rank = 0;
    uint64_t step = 0;
    uint32_t batch = 0;
  };
  // Whether the push names shared row `index`, and the value that it has for it. async: which
  // update comes when isn't known, so all have one value, and the second row none.
  bool isNamed(const Source& source, uint32_t index) const;
  float gradientOf(const Source& source) const;

  // After an update of each of these sets.
  struct State {
    float value = 0;
    std::vector<float> slots;
  };
  const State& after(const std::vector<std::vector<Source>>& updates, uint32_t index);

 private:
  float meanOf(const std::vector<Source>& update, uint32_t index) const;
  State replay(const std::vector<float>& means) const;

  const Plan& plan_;
  std::map<std::vector<float>, State> known_;  // by the mean of each update, 0: the row isn't named
};

}  // namespace dtf::sim
