#include "tests/bench/fma_peak.h"

#include <time.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/base/clock.h"

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

constexpr int kRepeats = 5;

}  // namespace

double fmaPeak(Isa isa) {
  constexpr long kRounds = 200'000;
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const double start = threadSeconds();
    const double operations = chains(isa, kRounds);
    best = std::max(best, operations / (threadSeconds() - start) / 1e9);
  }
  return best;
}

double fmaPeak(Isa isa, runtime::ComputePool& pool) {
  // Some milliseconds, so that waking a thread takes less than the variation of the measurements.
  // If a thread wakes so late that the caller has taken its part, the repeat is not the best.
  constexpr long kRounds = 1'000'000;
  const SystemClock clock;
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::vector<double> operations(static_cast<size_t>(pool.threads()));
    const TimePoint start = clock.now();
    pool.run(pool.threads(),
             [&](int part, int) { operations[static_cast<size_t>(part)] = chains(isa, kRounds); });
    const double seconds = toSeconds(clock.now() - start);
    best =
        std::max(best, std::accumulate(operations.begin(), operations.end(), 0.0) / seconds / 1e9);
  }
  return best;
}

}  // namespace dtf::bench
