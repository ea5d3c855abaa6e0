#pragma once

// What bounded training promises: a worker that begins a step is at most `staleness` steps ahead of
// every other, and on every ps its parameters have all that the others have pushed up to so many
// steps before, but for the first push of one that came late. Judged in lives in which nothing goes
// wrong, where a worker's progress is its own count of steps, from where it began.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tests/sim/plan.h"

namespace dtf::sim {

// Borrows: `plan`.
class StalenessCheck {
 public:
  explicit StalenessCheck(const Plan& plan) : plan_(plan) {}

  void beginLife();

  // Whether `ps` has what a process of `rank` has pushed as its `step`.
  using Holds = std::function<bool(uint32_t ps, uint32_t rank, uint32_t process, uint64_t step)>;
  // A process was given parameters and told `state`; what is wrong with that.
  std::optional<std::string> fault(uint32_t rank, uint32_t process, const ps::StepState& state,
                                   const Holds& holds);

 private:
  struct Told {
    uint32_t process = 0;
    ps::StepState first;
    ps::StepState last;
  };
  const Plan& plan_;
  size_t lives_ = 0;               // begun
  std::map<uint32_t, Told> told_;  // by rank
};

}  // namespace dtf::sim
