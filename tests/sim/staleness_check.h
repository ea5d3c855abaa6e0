#pragma once

// Checks the promises of bounded training. A worker that begins a step is at most `staleness` steps
// ahead of every other. On every ps its parameters contain all pushes of the others up to that many
// steps before, except the first push of a late worker. A worker that has done its part of the
// epochs holds nobody. Only undisturbed lives are judged: there a worker's progress is its own
// count of steps, from its first one.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/replication/step_state.h"
#include "tests/sim/epoch_shares.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

// Borrows: `plan`, `shares`.
class StalenessCheck {
 public:
  StalenessCheck(const Plan& plan, const EpochShares& shares) : plan_(plan), shares_(shares) {}

  void beginLife();

  // Whether `ps` has the push of `step` by that process of `rank`.
  using Holds = std::function<bool(uint32_t ps, uint32_t rank, uint32_t process, uint64_t step)>;
  // Returns the fault in the parameters and `state` that a process received; nullopt: none.
  std::optional<std::string> fault(uint32_t rank, uint32_t process,
                                   const replication::StepState& state, const Holds& holds);

 private:
  struct Told {
    uint32_t process = 0;
    replication::StepState first;
    replication::StepState last;
  };
  const Plan& plan_;
  const EpochShares& shares_;
  size_t lives_ = 0;               // begun
  std::map<uint32_t, Told> told_;  // by rank
};

}  // namespace dtf::sim
