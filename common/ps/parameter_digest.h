#pragma once

// One number for all parameters of a model: equal exactly when every bit is.

#include <cstdint>
#include <functional>

#include "common/ps/parameter_layout.h"

namespace dtf::ps {

// FNV-1a, 64 bits, over the variables in order, each flattened row-major: independent of how many
// ps hold them and of where. `arena(ps_task)` is the shard's arena.
uint64_t parameterDigest(const ParameterLayout& layout,
                         const std::function<const float*(uint32_t ps_task)>& arena);

}  // namespace dtf::ps
