#pragma once

// How fast a core, or several at once, multiply and add when nothing but registers takes part: what
// every product of matrices is measured against.

#include "common/base/isa.h"
#include "common/runtime/compute_pool.h"

namespace dtf::bench {

// GF/s of one thread, two operations for each multiply-add; takes some milliseconds. Where the
// instruction set has no fused multiply-add, of multiplications and additions.
double fmaPeak(Isa isa);

// Of all threads of `pool` at the same time, by the clock on the wall: less than that many times
// one thread's where two of the cores are halves of one, as a host may give them to a virtual
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
