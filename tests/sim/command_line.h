// The command line that the simulators share.
//   NAME --seeds 0:2000        runs them; prints each that breaks a promise, with its plan and log
//   NAME --seed 17 [--verbose] replays one, with its event log

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtf::sim {

// A simulator's functions. The thread of simulate() calls them all.
struct Simulator {
  const char* name;
  uint64_t seeds;  // 0 up to this without arguments
  // Runs a seed and returns the promises it broke; adds its counts to sums().
  std::function<std::vector<std::string>(uint64_t seed)> run;
  // Prints the seed's plan, its events if verbose, and how it ended; returns whether it kept all
  // promises.
  std::function<bool(uint64_t seed, bool verbose)> replay;
  std::function<std::string()> sums;  // of all that run() has run, without a full stop
};

// Returns the exit code: 0, 1 when a promise was broken, 2 for unknown arguments.
int simulate(const Simulator& simulator, int argc, char** argv);

}  // namespace dtf::sim
