// session_sim: seeded simulations of tasks that serve, and their clients.
//   session_sim --seeds 0:2000        runs them; prints those that break a promise, with plan and log
//   session_sim --seed 17 [--verbose] replays one, with its event log
// Ends with 1 when a promise was broken.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/log.h"
#include "tests/session_sim/session_sim.h"

namespace dtf::sim {

namespace {

int replay(uint64_t seed, bool verbose) {
  const SessionPlan plan = makeSessionPlan(seed);
  std::printf("%s", plan.text().c_str());
  std::function<void(const std::string&)> print;
  if (verbose) print = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  SessionSim sim(plan, print);
  const SessionReport report = sim.run();
  for (const std::string& problem : report.problems) std::printf("problem: %s\n", problem.c_str());
  std::printf("%shash %016lx\n", report.text().c_str(), report.hash);
  return report.problems.empty() ? 0 : 1;
}

int runSeeds(uint64_t from, uint64_t to) {
  const auto begin = std::chrono::steady_clock::now();
  SessionReport sum;
  uint64_t broken = 0;
  for (uint64_t seed = from; seed < to; ++seed) {
    const SessionReport report = runSessionSeed(seed);
    sum += report;
    if (report.problems.empty()) continue;
    if (++broken <= 3) replay(seed, true);
    std::printf("seed %lu: %s\n", seed, report.problems.front().c_str());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s%lu seeds, %lu broke a promise, in %.1f s\n", sum.text().c_str(), to - from,
              broken, took.count());
  return broken == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  uint64_t from = 0, to = 500;
  bool is_one = false, verbose = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      verbose = true;
    } else if (option == "--seed" && i + 1 < argc) {
      is_one = true;
      from = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--seeds" && i + 1 < argc) {
      char* end = nullptr;
      from = std::strtoull(argv[++i], &end, 10);
      to = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : from + 1;
    } else {
      std::fprintf(stderr, "usage: session_sim [--seeds FROM:TO] [--seed N [--verbose]]\n");
      return 2;
    }
  }
  return is_one ? replay(from, verbose) : runSeeds(from, to);
}

}  // namespace

}  // namespace dtf::sim

int main(int argc, char** argv) {
  dtf::log::init("sim", dtf::log::Level::kError);
  return dtf::sim::run(argc, argv);
}
