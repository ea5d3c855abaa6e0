#pragma once

// A drawn data set for recommenders: users' clicks on items. Like the tables of synthetic.h, a pure
// function of (seed, stream, i), the same to the bit on every machine.

#include <array>
#include <cstdint>
#include <vector>

#include "common/data/dataset.h"

namespace dtf::data {

inline constexpr int64_t kClickFeatures = 4;

// The rule behind the clicks, without the noise: a user clicks on an item if the score is above 0.
// Owns: the numbers of all users and items.
// Threads: immutable, hence thread-safe.
class ClickRule {
 public:
  using Numbers = std::array<float, kClickFeatures>;

  explicit ClickRule(uint64_t seed);

  // Returns 2 p q + w x: p are four numbers of the user, q of the item, w of the job, all in [-1,
  // 1).
  double score(int32_t user, int32_t item, const Numbers& x) const;

 private:
  std::vector<Numbers> users_, items_;
  Numbers weights_;
};

// Example i has a user and an item, low numbers more often, and four numbers in [-1, 1). Its class
// is 1 if the score plus a little noise is above 0. The user or the item alone doesn't predict it,
// both together do: the rule itself is right 0.957 of the time, a model with an embedding of each
// 0.93, a model of the four numbers alone 0.67. Categories: "user" below cluster::kClickUsers,
// "item" below cluster::kClickItems. `count` is positive; drawSynthetic() checks it.
Dataset drawClicks(uint64_t seed, bool eval, int64_t count);

}  // namespace dtf::data
