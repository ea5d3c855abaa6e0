#pragma once

// Arenas of variables in packs of 16 bytes, each within one line: common/runtime/variable_ops.h.

#include <cstdint>

#include "common/runtime/variable_ops.h"
#include "gpu/pack.h"

namespace dtf::gpu {

inline constexpr int kArenaPack = 4;
inline constexpr int64_t kPacksOfLine = runtime::kArenaLine / kArenaPack;
using ArenaPack = Pack<float, kArenaPack>;

}  // namespace dtf::gpu
