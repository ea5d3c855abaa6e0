// sim: seeded simulations of whole jobs.
//   sim --seeds 0:2000        runs them; prints each that breaks a promise, with its plan and log
//   sim --seed 17 [--verbose] replays one, with its event log
// Ends with 1 when a promise was broken.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/log.h"
#include "tests/sim/cluster_sim.h"

namespace dtf::sim {

namespace {

void printLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
}

int replay(uint64_t seed, bool verbose) {
  const Plan plan = makePlan(seed);
  std::printf("%s", plan.text().c_str());
  ClusterSim sim(plan, verbose ? printLine : std::function<void(const std::string&)>());
  const Report report = sim.run();
  for (const std::string& problem : report.problems) std::printf("problem: %s\n", problem.c_str());
  std::printf("%s after %.3f s, %llu events, hash %016llx\n",
              report.finished ? "finished" : "failed", report.virtual_seconds,
              static_cast<unsigned long long>(report.events),
              static_cast<unsigned long long>(report.hash));
  return report.problems.empty() ? 0 : 1;
}

int runSeeds(uint64_t from, uint64_t to) {
  const auto begin = std::chrono::steady_clock::now();
  uint64_t broken = 0;
  uint64_t finished = 0;
  uint64_t faults = 0;
  uint64_t events = 0;
  double virtual_seconds = 0;
  for (uint64_t seed = from; seed < to; ++seed) {
    const Report report = runSeed(seed);
    finished += report.finished ? 1 : 0;
    faults += report.faults;
    events += report.events;
    virtual_seconds += report.virtual_seconds;
    if (report.problems.empty()) continue;
    if (++broken <= 3) replay(seed, true);
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed),
                report.problems.front().c_str());
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "%llu seeds, %llu broke a promise; %llu jobs finished, %llu faults, %llu events, %.0f "
      "virtual "
      "seconds in %.1f s\n",
      static_cast<unsigned long long>(to - from), static_cast<unsigned long long>(broken),
      static_cast<unsigned long long>(finished), static_cast<unsigned long long>(faults),
      static_cast<unsigned long long>(events), virtual_seconds, seconds);
  return broken == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  uint64_t from = 0;
  uint64_t to = 2000;
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
      std::fprintf(stderr, "usage: sim [--seeds FROM:TO] [--seed N [--verbose]]\n");
      return 2;
    }
  }
  return one ? replay(from, verbose) : runSeeds(from, to);
}

}  // namespace

}  // namespace dtf::sim

int main(int argc, char** argv) {
  dtf::log::init("sim", dtf::log::Level::kError);
  return dtf::sim::run(argc, argv);
}
