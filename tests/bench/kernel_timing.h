#pragma once

// Times of kernels, and their references. All are CPU times of the calling thread, so that other
// programs on the machine matter little.

#include <cstdint>
#include <functional>

#include "common/tensor/buffer.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

// The median of several measurements, each of as many calls as take 10 ms; --quick: of one.
double secondsPerCall(const std::function<void()>& work, const BenchOptions& options);

Buffer randomFloats(int64_t count);  // in [-1, 1)

// memcpy's bytes read and written in a second, of so many floats.
double copyRate(int64_t floats, const BenchOptions& options);

}  // namespace dtf::bench
