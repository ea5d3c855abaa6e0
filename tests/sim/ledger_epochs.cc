// Third part of Ledger: jobs that use each example once an epoch.

#include <fmt/format.h>

#include "tests/sim/ledger.h"

namespace dtf::sim {

void Ledger::onBatch(const Push& push, const cluster::BatchRange& range) const {
  const cluster::BatchRange due = shares_.range(push.name());
  if (range == due) return;
  complain_(fmt::format(
      "{} is of {} examples of epoch {} from {} on, due are {} of epoch {} from {}", push.text(),
      range.count, range.epoch, range.first, due.count, due.epoch, due.first));
}

// `sums`: as contributions(). A worker does steps of others only if these are given up.
void Ledger::checkParts(const std::vector<uint8_t>& sums, std::string_view who) const {
  if (may_give_up_) return;
  for (uint32_t rank = 0; rank < plan_.workers; ++rank)
    for (uint64_t step = shares_.part(rank); step < plan_.steps; ++step)
      if (sums[(step * plan_.workers + rank) * batches_] != 0)
        return complain_(fmt::format("{}: worker/{} has done step {}, but has a part of {} steps",
                                     who, rank, step, shares_.part(rank)));
}

// Checks how often each example was used: once an epoch. Fewer are used if the job was stopped, if
// a part or a share was given up, or where backup workers come too late.
void Ledger::checkEpochs(const float* arena, bool is_whole) {
  const bool may_lack = !is_whole || may_give_up_ || plan_.hasBackups();
  std::vector<uint32_t> uses(plan_.epochs * plan_.examples);
  final_.given_up = 0;
  for (size_t i = kFirstCell; i < kFirstCell + identities_; ++i) {
    if (arena[i] == 0) continue;
    const Push push = pushOf(i);
    if (!plan_.sync() && push.step >= shares_.part(push.rank)) {
      ++final_.given_up;
      continue;
    }
    const cluster::BatchRange range = shares_.range(push.name());
    const uint64_t first = range.epoch * plan_.examples + range.first;
    for (uint64_t example = first; example < first + range.count; ++example) ++uses.at(example);
  }
  for (uint64_t i = 0; i < uses.size(); ++i)
    if (uses[i] > 1 || (uses[i] == 0 && !may_lack))
      return complain_(fmt::format("at the end example {} was used {} times in epoch {}",
                                   i % plan_.examples, uses[i], i / plan_.examples));
}

uint64_t Ledger::gradientsDue(uint64_t begin) const {
  const uint64_t end = finals() > 0 ? finalStep() : plan_.steps;
  if (!plan_.hasBackups()) return (end - begin) * (plan_.sync() ? plan_.aggregate : 1);
  uint64_t gradients = 0;
  for (uint64_t step = begin; step < end; ++step)
    gradients += finals() > 0 ? final_.sets[step].gradients : shares_.due(step);
  return gradients;
}

}  // namespace dtf::sim
