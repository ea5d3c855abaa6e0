#pragma once

// One number for all parameters of a model: equal exactly when every bit is.

#include <cstdint>
#include <functional>

#include "common/ps/parameter_layout.h"

namespace dtf::ps {

// XXH3-64 (seed 0) of the variables' float32s, little-endian: the variables in order, each
// flattened row-major. Independent of how many ps hold them and of where; it is what `xxhsum -H3`
// prints of the arrays written one behind the other. `arena(ps_task)` is the shard's arena.
uint64_t parameterDigest(const ParameterLayout& layout,
                         const std::function<const float*(uint32_t ps_task)>& arena);

}  // namespace dtf::ps
