// session_sim: seeded simulations of tasks that serve, and their clients; from seed 1000000000 on,
// of trainings by synchronous replicas. Its arguments are in tests/sim/command_line.h. Ends with 1
// when a promise was broken.

#include <fmt/format.h>

#include "tests/session_sim/replicas_sim.h"
#include "tests/session_sim/session_sim.h"
#include "tests/sim/command_line.h"

namespace dtf::sim {

namespace {

void printLine(const std::string& line) {
  fmt::print("{}\n", line);
}

bool tellProblems(const std::vector<std::string>& problems, const std::string& text,
                  uint64_t hash) {
  for (const std::string& problem : problems) fmt::print("problem: {}\n", problem);
  fmt::print("{}, hash {:016x}\n", text, hash);
  return problems.empty();
}

bool replay(uint64_t seed, bool verbose) {
  const auto print = verbose ? printLine : std::function<void(const std::string&)>();
  if (seed >= kFirstReplicasSeed) {
    const ReplicasPlan plan = makeReplicasPlan(seed);
    fmt::print("{}", plan.text());
    ReplicasSim sim(plan, print);
    const ReplicasReport report = sim.run();
    return tellProblems(report.problems, report.text(), report.hash);
  }
  const SessionPlan plan = makeSessionPlan(seed);
  fmt::print("{}", plan.text());
  SessionSim sim(plan, print);
  const SessionReport report = sim.run();
  return tellProblems(report.problems, report.text(), report.hash);
}

}  // namespace

}  // namespace dtf::sim

int main(int argc, char** argv) {
  using namespace dtf::sim;
  SessionReport sum;
  ReplicasReport replicas;
  Simulator simulator{"session_sim", 500, {}, replay, [&] {
                        return replicas.events == 0 ? sum.text() : replicas.text();
                      }};
  simulator.run = [&](uint64_t seed) {
    if (seed >= kFirstReplicasSeed) {
      const ReplicasReport report = runReplicasSeed(seed);
      replicas += report;
      return report.problems;
    }
    const SessionReport report = runSessionSeed(seed);
    sum += report;
    return report.problems;
  };
  return simulate(simulator, argc, argv);
}
