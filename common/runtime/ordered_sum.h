#pragma once

// Sums of arrays that threads have made, in the order in which one thread would have made them.

#include <cstdint>

#include "common/runtime/processor.h"

namespace dtf::runtime {

// to[i] += terms[0][i], then terms[1][i], and so on: `count` arrays of `n` floats, one after the
// other.
void addInOrder(const Processor& cpu, const float* terms, int64_t count, int64_t n, float* to);

}  // namespace dtf::runtime
