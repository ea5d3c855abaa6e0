#pragma once

// What the test's device remembers since the last synchronise(), to find copies beside programs
// that are none: they may happen early or late, so this device has them happen at the worst moment.

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
  std::set<const std::byte*> used;  // that launches have read or written
  std::vector<Copy> late;  // to the host, beside the programs: made when they are waited for
  size_t late_made = 0;    // of them
};

}  // namespace dtf::gpu
