#pragma once

// Sums of arrays computed by threads, added in the order of a single thread.

#include <cstdint>

#include "common/runtime/processor.h"

namespace dtf::runtime {

// to[i] += terms[0][i], then terms[1][i], and so on: `count` arrays of `n` floats, in order.
void addInOrder(const Processor& cpu, const float* terms, int64_t count, int64_t n, float* to);

}  // namespace dtf::runtime
