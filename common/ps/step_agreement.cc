#include "common/ps/step_agreement.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/ps/replication_rules.h"

namespace dtf::ps {

Agreement agree(const cluster::ReplicationSpec& replication, std::span<const StepState> states,
                std::span<const std::optional<uint64_t>> asked) {
  DTF_CHECK(!states.empty() && states.size() == asked.size());
  Agreement agreement;
  agreement.state = states[0];
  if (!sharesSteps(replication)) return agreement;

  uint64_t lowest = states[0].next_step;
  uint64_t highest = states[0].next_step;
  for (const StepState& state : states) {
    lowest = std::min(lowest, state.next_step);
    highest = std::max(highest, state.next_step);
    // A batch that some ps lacks is pushed to all again: those that have it say so.
    agreement.state.next_batch = std::min(agreement.state.next_batch, state.next_batch);
  }
  if (lowest == highest) return agreement;

  // First those ahead are asked for the step before. Where that is gone, the others have caught up:
  // ask them.
  bool lowest_is_gone = false;
  for (size_t ps = 0; ps < states.size(); ++ps) {
    lowest_is_gone |= states[ps].next_step > lowest && asked[ps] == lowest;
  }
  for (uint32_t ps = 0; ps < states.size(); ++ps) {
    if (lowest_is_gone && states[ps].next_step < highest) {
      agreement.again.push_back({ps, std::nullopt});
    } else if (!lowest_is_gone && states[ps].next_step > lowest) {
      agreement.again.push_back({ps, lowest});
    }
  }
  return agreement;
}

}  // namespace dtf::ps
