#include "tests/sim/command_line.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "common/base/log.h"

namespace dtf::sim {

namespace {

constexpr uint64_t kReplaysMax = 3;  // of a run's broken seeds, with their events

int runSeeds(const Simulator& simulator, uint64_t from, uint64_t to) {
  const auto begin = std::chrono::steady_clock::now();
  uint64_t broken = 0;
  for (uint64_t seed = from; seed < to; ++seed) {
    const std::vector<std::string> problems = simulator.run(seed);
    if (problems.empty()) continue;
    if (++broken <= kReplaysMax) simulator.replay(seed, true);
    fmt::print("seed {}: {}\n", seed, problems.front());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} seeds, {} broke a promise; {}, in {:.1f} s\n", to - from, broken, simulator.sums(),
             took.count());
  return broken == 0 ? 0 : 1;
}

}  // namespace

int simulate(const Simulator& simulator, int argc, char** argv) {
  log::init("sim", log::Level::kError);
  uint64_t from = 0;
  uint64_t to = simulator.seeds;
  bool one = false;
  bool verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      verbose = true;
    } else if (option == "--seed" && i + 1 < argc) {
      one = true;
      from = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--seeds" && i + 1 < argc) {
      char* end = nullptr;
      from = std::strtoull(argv[++i], &end, 10);
      to = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1;
    } else {
      fmt::print(stderr, "usage: {} [--seeds FROM:TO] [--seed N [--verbose]]\n", simulator.name);
      return 2;
    }
  }
  if (one) return simulator.replay(from, verbose) ? 0 : 1;
  return runSeeds(simulator, from, to);
}

}  // namespace dtf::sim
