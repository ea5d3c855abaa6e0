#include "tests/bench/fma_peak.h"

#include <time.h>

#include <algorithm>

namespace dtf::bench {
namespace {

double chains(Isa isa, long rounds) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::fmaChains(rounds);
  if (isa == Isa::kV3) return v3::fmaChains(rounds);
#endif
  (void)isa;
  return baseline::fmaChains(rounds);
}

double threadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

double fmaPeak(Isa isa) {
  constexpr long kRounds = 200'000;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const double start = threadSeconds();
    const double operations = chains(isa, kRounds);
    best = std::max(best, operations / (threadSeconds() - start) / 1e9);
  }
  return best;
}

}  // namespace dtf::bench
