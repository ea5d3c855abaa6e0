#pragma once

// A worker computes only when every ps has given it the parameters of the same step. After a crash
// in the middle of a step, or for a slow backup worker, the answers may name different steps; then
// this decides from which ps to pull again.
//
// Parameters of two epochs (replication/epoch.h) are of two lines of history: the worker pulls from
// a ps that is behind until that has reached the epoch of the others.
//
// In bounded training ps/0 assigns a worker's clock, and the worker brings it to the other ps: in
// its pushes, and by a pull from a ps that has another clock or none. Once the job is done for the
// worker, it brings kProgressEnd.
//
// Why this ends: a worker pushes step s only after every ps has named s to it. So a push of its
// current step proves to a ps that all ps have reached that step; until then it keeps the
// parameters of the step before.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/replication/step_state.h"

namespace dtf::exchange {

struct Agreement {
  // The state to act upon, when `again` is empty. Its outcome is ps/0's.
  replication::StepState state;
  // Otherwise: pulls to repeat; their answers replace the earlier ones, then call agree() again.
  struct Pull {
    uint32_t ps_task = 0;
    replication::Wanted wanted;
    uint64_t epoch = 0;  // or a later one; the ps answers when it has got there
    bool operator==(const Pull&) const = default;
  };
  std::vector<Pull> again;
};

// How many rounds of pulls a worker makes before it gives up.
inline constexpr int kAgreementRoundsMax = 1000;

// Compares `states`, the newest answer of each ps. `asked` (per ps): wanted.step of the pull that
// brought it, nullopt for a plain pull or a push. Pure function.
Agreement agree(const cluster::ReplicationSpec& replication,
                std::span<const replication::StepState> states,
                std::span<const std::optional<uint64_t>> asked);

// The rounds of one worker's calls to all ps, until their answers agree; every client uses it. Use:
// start(); call every ps, answered() for each; while again() returns pulls, repeat these; then
// state().
// Threads: thread-compatible.
class Settlement {
 public:
  // `who`: the worker's name in errors.
  Settlement(const cluster::ReplicationSpec& replication, uint32_t ps_tasks, std::string who);

  // Begins a call to every ps. `is_push`: with gradients of the parameters that settled last.
  void start(bool is_push = false);
  void answered(uint32_t ps_task, const replication::StepState& state);

  // Returns the pulls to repeat, when all calls have been answered. Empty: settled.
  // Errors: kUnavailable after kAgreementRoundsMax rounds.
  std::vector<Agreement::Pull> again();

  // Returns the state to act upon, when settled. The outcome of a push is from ps/0's first answer,
  // since answers to pulls don't have it. If any ps went back, it is kWentBack: the push has no
  // lasting effect, even if another ps has applied it.
  const replication::StepState& state() const;

 private:
  const cluster::ReplicationSpec replication_;
  const std::string who_;
  std::vector<replication::StepState> states_;  // per ps: the newest answer
  std::vector<std::optional<uint64_t>> asked_;
  std::optional<replication::Outcome> outcome_;  // of the push
  bool is_push_ = false;
  bool went_back_ = false;  // some ps did
  uint64_t epoch_ = 0;      // of the state that settled last
  std::optional<replication::StepState> settled_;
  int rounds_ = 0;
};

}  // namespace dtf::exchange
