#pragma once

// What a recommender learns from, drawn: who clicks on what. As synthetic.h's tables, a pure
// function of (seed, stream, i), the same to the bit on every machine.

#include <array>
#include <cstdint>
#include <vector>

#include "common/data/dataset.h"

namespace dtf::data {

inline constexpr int64_t kClickFeatures = 4;

// Who clicks on what, but for the noise: where the score is above 0.
// Owns: the numbers of all users and items.
// Threads: immutable, hence thread-safe.
class ClickRule {
 public:
  using Numbers = std::array<float, kClickFeatures>;

  explicit ClickRule(uint64_t seed);

  // 2 p q + w x: p are four numbers of the user, q of the item, w of the job, all in [-1, 1).
  double score(int32_t user, int32_t item, const Numbers& x) const;

 private:
  std::vector<Numbers> users_, items_;
  Numbers weights_;
};

// Example i: a user and an item, both by popularity, low numbers first, and four numbers in [-1,
// 1). Its class is 1 where the score and a little noise are above 0. Neither the user nor the item
// alone tells it, but both together do: the rule itself is right 0.957 of the time, a model with an
// embedding of each 0.93, one of the four numbers alone 0.67.
// Categories: "user" below
// cluster::kClickUsers, "item" below cluster::kClickItems.
// Errors: kBadConfig for a count that is not positive.
Dataset drawClicks(uint64_t seed, bool eval, int64_t count);

}  // namespace dtf::data
