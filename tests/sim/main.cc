// sim: seeded simulations of whole jobs; its arguments are in command_line.h.
// Ends with 1 when a promise was broken.

#include <fmt/format.h>

#include "tests/sim/cluster_sim.h"
#include "tests/sim/command_line.h"

namespace dtf::sim {

namespace {

void printLine(const std::string& line) {
  fmt::print("{}\n", line);
}

bool replay(uint64_t seed, bool verbose) {
  const Plan plan = makePlan(seed);
  fmt::print("{}", plan.text());
  ClusterSim sim(plan, verbose ? printLine : std::function<void(const std::string&)>());
  const Report report = sim.run();
  for (const std::string& problem : report.problems) fmt::print("problem: {}\n", problem);
  fmt::print("{} after {:.3f} s, {} events, hash {:016x}\n",
             report.finished ? "finished" : "failed", report.virtual_seconds, report.events,
             report.hash);
  return report.problems.empty();
}

// Totals over the runs of many seeds.
struct Sums {
  uint64_t finished = 0;
  uint64_t faults = 0;
  uint64_t events = 0;
  double virtual_seconds = 0;

  void add(const Report& report) {
    finished += report.finished ? 1 : 0;
    faults += report.faults;
    events += report.events;
    virtual_seconds += report.virtual_seconds;
  }

  std::string text() const {
    return fmt::format("{} jobs finished, {} faults, {} events, {:.0f} virtual seconds", finished,
                       faults, events, virtual_seconds);
  }
};

}  // namespace

}  // namespace dtf::sim

int main(int argc, char** argv) {
  using namespace dtf::sim;
  Sums sums;
  Simulator simulator{"sim", 2000, {}, replay, [&] { return sums.text(); }};
  simulator.run = [&](uint64_t seed) {
    const Report report = runSeed(seed);
    sums.add(report);
    return report.problems;
  };
  return simulate(simulator, argc, argv);
}
