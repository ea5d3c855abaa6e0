// Compiled once per instruction set, as the kernels are.

#include "common/runtime/vector.h"
#include "tests/bench/fma_peak.h"

namespace dtf::bench::DTF_ISA {

// Independent chains enough to hide the latency of an operation, in as many registers as there are.
double fmaChains(long rounds) {
  using namespace runtime::DTF_ISA;  // NOLINT(google-build-using-namespace): its vectors
  constexpr int kChains = kLanes == 16 ? 24 : 12;
  Floats sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = splat(static_cast<float>(i));
  volatile float given = 0.5f;
  const Floats a = splat(given), b = splat(given);
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kChains; ++i) sums[i] = fma(sums[i], a, b);
  }
  Floats total = {};
  for (int i = 0; i < kChains; ++i) total += sums[i];
  volatile float kept = total[0];
  (void)kept;
  return 2.0 * kChains * kLanes * static_cast<double>(rounds);
}

}  // namespace dtf::bench::DTF_ISA
