#pragma once

// State of the test's device since the last synchronise(). It finds copies that run beside
// programs: a real device may make them early or late, this one makes them at the worst moment.

#include <cstddef>
#include <set>
#include <vector>

#include "gpu/device.h"

namespace dtf::gpu {

struct Device::Libraries {
  struct Copy {
    std::byte* target;
    const std::byte* source;
    size_t bytes;
  };
  std::set<const std::byte*> used;  // read or written by launches
  std::vector<Copy> late;  // copies to the host, beside the programs: made when they are awaited
  size_t late_made = 0;    // number of `late` that are made
};

}  // namespace dtf::gpu
