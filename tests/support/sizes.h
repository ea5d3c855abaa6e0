#pragma once

// Amounts of bytes by name.

#include <cstddef>

namespace dtf {

inline constexpr size_t kMiB = 1 << 20;

}  // namespace dtf
