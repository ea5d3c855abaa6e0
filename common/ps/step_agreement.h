#pragma once

// A worker computes only when every ps has given it the parameters of one and the same step. After
// a crash in the middle of a step, or for a slow backup worker, the answers may name different
// steps; this says whom to ask again.
//
// Why it ends: a worker pushes step s only once every ps has told it s. So a ps that has seen a
// push of its current step knows that all ps have reached that step; until then it keeps the
// parameters of the step before.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ps/parameter_client.h"

namespace dtf::ps {

struct Agreement {
  // When `again` is empty: the state to act upon. Its outcome is ps/0's.
  StepState state;
  // Otherwise: pulls to repeat, whose answers replace the earlier ones; then ask again.
  struct Pull {
    uint32_t ps_task = 0;
    std::optional<uint64_t> wanted_step;
  };
  std::vector<Pull> again;
};

// How often the question may be repeated before the client gives up with kUnavailable.
inline constexpr int kAgreementRoundsMax = 1000;

// `states`: per ps the newest answer. `asked` (per ps): wanted_step of the pull that brought it,
// nullopt for a plain pull or a push. Pure function.
Agreement agree(const cluster::ReplicationSpec& replication, std::span<const StepState> states,
                std::span<const std::optional<uint64_t>> asked);

}  // namespace dtf::ps
