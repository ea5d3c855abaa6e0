// session_sim: seeded simulations of tasks that serve, and their clients; its arguments are in
// tests/sim/command_line.h. Ends with 1 when a promise was broken.

#include <fmt/format.h>

#include "tests/session_sim/session_sim.h"
#include "tests/sim/command_line.h"

namespace dtf::sim {

namespace {

void printLine(const std::string& line) {
  fmt::print("{}\n", line);
}

bool replay(uint64_t seed, bool verbose) {
  const SessionPlan plan = makeSessionPlan(seed);
  fmt::print("{}", plan.text());
  SessionSim sim(plan, verbose ? printLine : std::function<void(const std::string&)>());
  const SessionReport report = sim.run();
  for (const std::string& problem : report.problems) fmt::print("problem: {}\n", problem);
  fmt::print("{}, hash {:016x}\n", report.text(), report.hash);
  return report.problems.empty();
}

}  // namespace

}  // namespace dtf::sim

int main(int argc, char** argv) {
  using namespace dtf::sim;
  SessionReport sum;
  Simulator simulator{"session_sim", 500, {}, replay, [&] { return sum.text(); }};
  simulator.run = [&](uint64_t seed) {
    const SessionReport report = runSessionSeed(seed);
    sum += report;
    return report.problems;
  };
  return simulate(simulator, argc, argv);
}
