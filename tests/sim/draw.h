// Random draws for the plans of simulations. The same seed draws the same.

#pragma once

#include "common/base/clock.h"
#include "common/base/random.h"

namespace dtf::sim {

// Uniform in [0, most].
inline Duration upTo(Random& random, Duration most) {
  return Duration(static_cast<int64_t>(random.below(static_cast<uint64_t>(most.count()) + 1)));
}

// Whether this is the one of n. n > 0.
inline bool oneIn(Random& random, uint64_t n) {
  return random.below(n) == 0;
}

}  // namespace dtf::sim
