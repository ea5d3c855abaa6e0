#pragma once

// Durations of a worker's batches.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/clock.h"

namespace dtf::train {

// A histogram of fixed bounds, and the sum. Value type.
struct StepTimes {
  // Upper bounds in seconds: from the smallest step over a loopback to a step of a large model.
  static constexpr std::array kAtMost = {25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3,   2.5e-3,
                                         5e-3,  10e-3, 25e-3,  50e-3,  100e-3, 250e-3, 500e-3,
                                         1.0,   2.5,   5.0,    10.0,   25.0};

  std::array<uint64_t, kAtMost.size() + 1> counts{};  // the last: longer than all
  double sum = 0;                                     // seconds
  double exchanges = 0;  // seconds in exchanges, each from the whole gradient to the answer

  void add(Duration time) {
    const double seconds = toSeconds(time);
    ++counts[static_cast<size_t>(std::ranges::lower_bound(kAtMost, seconds) - kAtMost.begin())];
    sum += seconds;
  }
};

}  // namespace dtf::train
