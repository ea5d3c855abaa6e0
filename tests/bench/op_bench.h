#pragma once

// `dtf-bench kernels`, the ops that are neither convolutions nor pooling: the CPU's kernel of each
// on one thread, products of matrices beside the rate of multiply-adds between registers, all
// others in bytes read and written beside memcpy of as many. Each on tensors that the processor's
// cache holds and, but products, on some that it doesn't.

#include <vector>

#include "common/base/isa.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

// Reports the rows with names that begin with options.only: a table may be empty.
// Errors: kInternal with the ops that have a kernel and no row here: every kernel must be measured.
std::vector<Report> benchOps(Isa isa, const BenchOptions& options);

}  // namespace dtf::bench
