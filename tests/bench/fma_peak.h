#pragma once

// The speed at which a core, or several at once, multiply and add between registers alone: the
// measure for every product of matrices.

#include "common/base/isa.h"
#include "common/runtime/compute_pool.h"

namespace dtf::bench {

// GF/s of one thread, two operations for each multiply-add; takes some milliseconds. Without fused
// multiply-add in the instruction set, of multiplications and additions.
double fmaPeak(Isa isa);

// GF/s of all threads of `pool` at the same time, by the wall clock. It is less than one thread's
// times their number if two of the cores are halves of one, as a host may give them to a virtual
// machine for some minutes.
double fmaPeak(Isa isa, runtime::ComputePool& pool);

namespace baseline {
double fmaChains(long rounds);  // does `rounds`; returns how many operations that were
}
namespace v3 {
double fmaChains(long rounds);
}
namespace v4 {
double fmaChains(long rounds);
}

}  // namespace dtf::bench
