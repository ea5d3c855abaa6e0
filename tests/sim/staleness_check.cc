#include "tests/sim/staleness_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace dtf::sim {

void StalenessCheck::beginLife() {
  ++lives_;
  told_.clear();
}

std::optional<std::string> StalenessCheck::fault(uint32_t rank, uint32_t process,
                                                 const replication::StepState& state,
                                                 const Holds& holds) {
  DTF_CHECK(lives_ > 0);
  if (!plan_.bounded() || !plan_.undisturbed(plan_.lives[lives_ - 1])) return std::nullopt;
  Told& told = told_.try_emplace(rank, Told{process, state, state}).first->second;
  told.last = state;
  if (state.done) return std::nullopt;
  for (const auto& [other, by] : told_) {
    if (other == rank || by.last.done) continue;
    // Its last push may be in before its answer arrives.
    const uint64_t part = shares_.part(other);
    const bool may_be_through = shares_.exist() && by.last.next_step + 1 >= part;
    if (!may_be_through && state.progress > by.last.progress + 1 + plan_.staleness)
      return fmt::format("it begins a step at {}, worker/{} is at {}", state.progress, other,
                         by.last.progress);
    const uint64_t begun = by.first.progress + plan_.staleness;
    // The first push of a late worker may be missing: a ps other than ps/0 learns of the worker
    // later.
    if (state.progress <= begun + 1) continue;
    const uint64_t due =
        std::min(state.progress - begun, part - std::min(part, by.first.next_step));
    for (uint64_t step = 0; step < due; ++step)
      for (uint32_t ps = 0; ps < plan_.shards(); ++ps)
        if (!holds(ps, other, by.process, by.first.next_step + step))
          return fmt::format("it begins a step at {}, ps/{} lacks step {} of worker/{}",
                             state.progress, ps, by.first.next_step + step, other);
  }
  return std::nullopt;
}

}  // namespace dtf::sim
