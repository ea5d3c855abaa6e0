#pragma once

// One number for all parameters of a model: equal exactly when every bit is.

#include <cstdint>
#include <functional>

#include "common/arena/parameter_layout.h"

namespace dtf::arena {

// Returns XXH3-64 (seed 0) of the variables' float32s, little-endian: the variables in order, each
// flattened row-major. It doesn't depend on the placement; `xxhsum -H3` prints the same for the
// arrays written one behind the other. `arena(ps_task)` is the shard's arena.
uint64_t parameterDigest(const ParameterLayout& layout,
                         const std::function<const float*(uint32_t ps_task)>& arena);

}  // namespace dtf::arena
