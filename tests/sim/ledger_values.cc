// Second part of Ledger: the exact values of elements and slots.

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/ledger.h"

namespace dtf::sim {

// Returns, by step, the set of gradients with examples that are in an arena of a sync job.
Ledger::Sets Ledger::setsOf(const float* arena) const {
  Sets sets(plan_.steps);
  for (size_t i = kFirstCell; plan_.sync() && i < kFirstCell + identities_; ++i) {
    if (arena[i] == 0) continue;
    const Push push = pushOf(i);
    if (const uint64_t examples = shares_.examples(push.name()); examples > 0)
      sets[push.step].add(examples);
  }
  return sets;
}

const ExpectedCells::Tables& Ledger::dueOf(uint32_t ps, size_t cell, const Sets& sets) const {
  const Push push = pushOf(cell);
  const bool is_sparse = plan_.isSparse(ps);
  return expected_.of(shares_.mean(push.name(), sets[push.step], is_sparse), is_sparse);
}

// Checks that every contribution is in once, in an update of its own (async) or of its step (sync),
// by its weight, and that all later updates were applied to it.
void Ledger::checkExact(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                        ExpectedCells::As as) const {
  const uint64_t updates = plan_.sync() ? step : countOf(arena);
  if (updates > expected_.updatesMax())
    return complain_(fmt::format("{}: ps/{} holds {} updates of a job of {} steps", who, ps,
                                 updates, plan_.steps));
  if (!plan_.sync()) return checkExactAsync(ps, arena, who, as);
  const Sets sets = setsOf(arena);
  for (size_t i = kFirstCell; i < kFirstCell + identities_; ++i) {
    if (arena[i] == 0) continue;
    const Push push = pushOf(i);
    const bool counts = push.step < step && shares_.examples(push.name()) > 0;
    const float due = counts ? dueOf(ps, i, sets).as(as)[step][push.step] : 0;
    if (arena[i] == due) continue;
    return complain_(
        fmt::format("{}: at step {} ps/{} holds {} for a contribution to step {} (element {}), {} "
                    "is due",
                    who, step, ps, arena[i], push.step, i, due));
  }
}

// The order of the updates is unknown: each contribution must be due for an update of its own.
void Ledger::checkExactAsync(uint32_t ps, const float* arena, std::string_view who,
                             ExpectedCells::As as) const {
  const uint64_t updates = countOf(arena);
  const Sets none(plan_.steps);
  std::vector<size_t> cells;
  for (size_t i = kFirstCell; i < kFirstCell + identities_; ++i)
    if (arena[i] != 0) cells.push_back(i);
  std::vector<std::optional<size_t>> taken(updates);  // by update: the index of its cell
  const auto isDue = [&](size_t index, size_t update) {
    return dueOf(ps, cells[index], none).as(as)[updates][update] == arena[cells[index]];
  };
  std::vector<bool> tried;
  // Finds an update for a cell; cells that have one already may have to take another.
  const std::function<bool(size_t)> place = [&](size_t index) {
    for (size_t update = 0; update < updates; ++update) {
      if (tried[update] || !isDue(index, update)) continue;
      tried[update] = true;
      if (taken[update] && !place(*taken[update])) continue;
      taken[update] = index;
      return true;
    }
    return false;
  };
  for (size_t index = 0; index < cells.size(); ++index) {
    tried.assign(updates, false);
    if (place(index)) continue;
    return complain_(fmt::format(
        "{}: after {} updates ps/{} holds {} as {}, which is due for no update of its own", who,
        updates, ps, pushOf(cells[index]).text(), arena[cells[index]]));
  }
}

void Ledger::checkSlots(uint32_t ps, const SavedArena& saved, uint64_t step,
                        std::string_view who) const {
  const uint64_t updates = plan_.sync() ? step : countOf(saved.values.data());
  if (updates > expected_.updatesMax()) return;  // checkExact() complains of it
  const Sets sets = setsOf(saved.values.data());
  for (size_t i = kFirstCell; i < kFirstCell + identities_; ++i) {
    bool right = false;
    if (saved.values[i] == 0) {
      right = std::all_of(saved.slots.begin(), saved.slots.end(),
                          [i](const auto& slot) { return slot[i] == 0; });
    } else {
      const ExpectedCells::Tables& due = dueOf(ps, i, sets);
      const auto equals = [&](uint64_t update) {
        for (uint32_t slot = 0; slot < slots(); ++slot)
          if (saved.slots[slot][i] != due.slots[slot][updates][update]) return false;
        return true;
      };
      for (uint64_t u = 0; u < updates && !right; ++u)
        right = saved.values[i] == due.saved[updates][u] && equals(u);
    }
    if (!right)
      return complain_(fmt::format(
          "{}: the slots of element {} on ps/{} are not those of its value", who, i, ps));
  }
}

// Returns the sources of each update: in sync mode the contributions to each step, in async mode
// one for each contribution.
std::vector<std::vector<SharedRows::Source>> Ledger::updatesIn(const float* arena,
                                                               uint64_t step) const {
  using Update = std::vector<SharedRows::Source>;
  if (!plan_.sync()) return std::vector<Update>(countOf(arena), Update(1));
  std::vector<Update> updates(step);
  for (uint64_t at = 0; at < std::min(step, plan_.steps); ++at)
    for (uint32_t rank = 0; rank < plan_.workers; ++rank)
      for (uint32_t batch = 0; batch < batches_; ++batch)
        if (holdsBatch({rank, 0, at, batch}, arena)) updates[at].push_back({rank, at, batch});
  return updates;
}

void Ledger::checkShared(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                         bool is_shown) const {
  if (!shared_.areKnown() || !plan_.isSparse(ps)) return;
  for (uint32_t index = 0; index < SharedRows::kCount; ++index) {
    const float value = shared_.after(updatesIn(arena, step), index).value;
    const float due = is_shown ? shownOf(plan_, value) : value;
    const float found = arena[SharedRows::kFirst + index];
    if (found != due)
      complain_(fmt::format("{}: at step {} row {} on ps/{}, which several name, is {}, {} is due",
                            who, step, SharedRows::kFirst + index, ps, found, due));
  }
}

void Ledger::checkSharedSlots(uint32_t ps, const SavedArena& saved, uint64_t step,
                              std::string_view who) const {
  if (!shared_.areKnown() || !plan_.isSparse(ps)) return;
  for (uint32_t index = 0; index < SharedRows::kCount; ++index) {
    const auto& due = shared_.after(updatesIn(saved.values.data(), step), index).slots;
    for (uint32_t slot = 0; slot < slots(); ++slot)
      if (saved.slots[slot][SharedRows::kFirst + index] != due[slot])
        complain_(fmt::format("{}: a slot of row {} on ps/{}, which several name, is {}, {} is due",
                              who, SharedRows::kFirst + index, ps,
                              saved.slots[slot][SharedRows::kFirst + index], due[slot]));
  }
}

}  // namespace dtf::sim
