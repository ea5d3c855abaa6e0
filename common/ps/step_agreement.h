#pragma once

// A worker computes only when every ps has given it the parameters of one and the same step. After
// a crash in the middle of a step, or for a slow backup worker, the answers may name different
// steps; this says whom to ask again.
//
// Parameters of two epochs (ps/epoch.h) are of two lines of history: a ps that is behind is asked
// until it has gone where the others are.
//
// In bounded training ps/0 says how far a worker is, and the worker tells the others: in its
// pushes, and, where one has heard nothing or something else, by a pull. Of a worker that is told
// that the job is done they hear kProgressEnd.
//
// Why it ends: a worker pushes step s only once every ps has told it s. So a ps that has seen a
// push of its current step knows that all ps have reached that step; until then it keeps the
// parameters of the step before.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ps/parameter_client.h"

namespace dtf::ps {

struct Agreement {
  // When `again` is empty: the state to act upon. Its outcome is ps/0's.
  StepState state;
  // Otherwise: pulls to repeat, whose answers replace the earlier ones; then ask again.
  struct Pull {
    uint32_t ps_task = 0;
    Wanted wanted;
    uint64_t epoch = 0;  // or a later one; the ps answers when it has got there
    bool operator==(const Pull&) const = default;
  };
  std::vector<Pull> again;
};

// How often a worker asks before it gives up.
inline constexpr int kAgreementRoundsMax = 1000;

// `states`: per ps the newest answer. `asked` (per ps): wanted.step of the pull that brought it,
// nullopt for a plain pull or a push. Pure function.
Agreement agree(const cluster::ReplicationSpec& replication, std::span<const StepState> states,
                std::span<const std::optional<uint64_t>> asked);

// The rounds of one worker's calls to all ps, until their answers agree: what every client does,
// however it asks. Use: start(); ask every ps, answered() for each; then while again() names pulls,
// repeat these; then state().
// Threads: thread-compatible.
class Settlement {
 public:
  // `who`: names the worker in errors.
  Settlement(const cluster::ReplicationSpec& replication, uint32_t ps_tasks, std::string who);

  // A call to every ps begins. `is_push`: with gradients of the parameters that settled last.
  void start(bool is_push = false);
  void answered(uint32_t ps_task, const StepState& state);

  // When all that were asked have answered: pulls to repeat. Empty: settled.
  // Errors: kUnavailable after kAgreementRoundsMax rounds.
  std::vector<Agreement::Pull> again();

  // When settled: what the worker acts upon. What became of its push ps/0 said in the first round:
  // answers to pulls don't tell. If any ps went back, the push has no effect that lasts, whatever
  // another has said of it: kWentBack.
  const StepState& state() const;

 private:
  const cluster::ReplicationSpec replication_;
  const std::string who_;
  std::vector<StepState> states_;  // per ps: the newest answer
  std::vector<std::optional<uint64_t>> asked_;
  std::optional<Outcome> outcome_;  // of the push
  bool is_push_ = false;
  bool went_back_ = false;  // says some ps
  uint64_t epoch_ = 0;      // of the state that settled last
  std::optional<StepState> settled_;
  int rounds_ = 0;
};

}  // namespace dtf::ps
