#include "tests/sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "common/ps/parameter_store.h"

namespace dtf::sim {

namespace {

constexpr size_t kFirstCell = 16;
static_assert(kFirstCell >= SharedRows::kFirst + SharedRows::kCount);

}  // namespace

std::string Push::text() const {
  return fmt::format("(worker/{}.{} step {} batch {})", rank, process, step, batch);
}

Ledger::Ledger(const Plan& plan, std::function<void(std::string)> complain)
    : plan_(plan),
      complain_(std::move(complain)),
      batches_(plan.batchesMax()),
      processes_(Plan::processesMax(plan.lives.size() - 1)),
      // Beside ps/0, halves of pushes whose worker died count as well.
      expected_(plan, plan.steps + (plan.sync() ? 0 : plan.workers * processes_)),
      staleness_(plan),
      shared_(plan),
      first_process_(plan.workers) {
  base_.first_process = first_process_;
  identities_ = uint64_t{plan.workers} * processes_ * plan.steps * batches_;
  elements_ = (kFirstCell + identities_ + 15) / 16 * 16;
  if (plan.slow_updates)
    elements_ = std::max(elements_, ps::kInlineUpdateBytes / sizeof(float) + 16);
}

size_t Ledger::cell(const Push& push) const {
  return kFirstCell +
         ((uint64_t{push.rank} * processes_ + push.process) * plan_.steps + push.step) * batches_ +
         push.batch;
}

uint64_t Ledger::stepOfCell(size_t cell) const {
  return (cell - kFirstCell) / batches_ % plan_.steps;
}

uint64_t Ledger::countOf(const float* arena) const {
  return static_cast<uint64_t>(identities_) -
         static_cast<uint64_t>(
             std::count(arena + kFirstCell, arena + kFirstCell + identities_, 0.0F));
}

// Every contribution is in once, in an update of its own (async) or of its step (sync), and what
// came after has had its effect.
void Ledger::checkExact(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                        const ExpectedCells::Table& expected) const {
  const uint64_t updates = plan_.sync() ? step : countOf(arena);
  if (updates >= expected.size())
    return complain_(fmt::format("{}: ps/{} holds {} updates of a job of {} steps", who, ps,
                                 updates, plan_.steps));
  std::vector<float> found;
  for (size_t i = kFirstCell; i < kFirstCell + identities_; ++i) {
    if (arena[i] == 0) continue;
    if (!plan_.sync()) {
      found.push_back(arena[i]);
      continue;
    }
    const uint64_t of_step = stepOfCell(i);
    if (of_step < step && arena[i] == expected[step][of_step]) continue;
    return complain_(fmt::format(
        "{}: at step {} ps/{} holds {} for a contribution to step {} (element {}), {} is due", who,
        step, ps, arena[i], of_step, i, of_step < step ? expected[step][of_step] : 0));
  }
  if (plan_.sync()) return;
  std::vector<float> due = expected[updates];
  std::sort(found.begin(), found.end());
  std::sort(due.begin(), due.end());
  const auto [at, other] = std::mismatch(found.begin(), found.end(), due.begin());
  if (at != found.end())
    complain_(fmt::format("{}: after {} updates ps/{} holds a contribution as {}, {} is due", who,
                          updates, ps, *at, *other));
}

void Ledger::checkSlots(uint32_t ps, const SavedArena& saved, uint64_t step,
                        std::string_view who) const {
  const uint64_t updates = plan_.sync() ? step : countOf(saved.values.data());
  if (updates >= expected_.saved().size()) return;  // said by checkExact()
  const std::vector<float>& due = expected_.saved()[updates];
  for (size_t i = kFirstCell; i < kFirstCell + identities_; ++i) {
    bool right = false;
    const auto equals = [&](uint64_t update) {
      for (uint32_t slot = 0; slot < slots(); ++slot)
        if (saved.slots[slot][i] != expected_.slots()[slot][updates][update]) return false;
      return true;
    };
    if (saved.values[i] == 0)
      right = std::all_of(saved.slots.begin(), saved.slots.end(),
                          [i](const auto& slot) { return slot[i] == 0; });
    for (uint64_t u = 0; u < updates && !right; ++u) right = saved.values[i] == due[u] && equals(u);
    if (!right)
      return complain_(fmt::format(
          "{}: the slots of element {} on ps/{} are not those of its value", who, i, ps));
  }
}

// By update: sync, whose contributions to each step are in; async, as many as are in.
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
  if (!plan_.sparse) return;
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
  if (!plan_.sparse) return;
  for (uint32_t index = 0; index < SharedRows::kCount; ++index) {
    const auto& due = shared_.after(updatesIn(saved.values.data(), step), index).slots;
    for (uint32_t slot = 0; slot < slots(); ++slot)
      if (saved.slots[slot][SharedRows::kFirst + index] != due[slot])
        complain_(fmt::format("{}: a slot of row {} on ps/{}, which several name, is {}, {} is due",
                              who, SharedRows::kFirst + index, ps,
                              saved.slots[slot][SharedRows::kFirst + index], due[slot]));
  }
}

// What earlier lives brought is in as the checkpoint had it, and nothing else of theirs.
void Ledger::checkEarlierLives(const Line& line, uint32_t ps, const float* arena,
                               std::string_view who) const {
  for (uint32_t rank = 0; rank < plan_.workers; ++rank) {
    const size_t begin = cell({rank, 0, 0, 0});
    const size_t end = cell({rank, line.first_process[rank], 0, 0});
    for (size_t i = begin; i < end; ++i) {
      const bool due = !line.restored.empty() && line.restored[ps][i] != 0;
      if ((arena[i] != 0) == due) continue;
      return complain_(
          fmt::format("{}: ps/{} {} a contribution of an earlier life of worker/{} "
                      "(element {}) which the checkpoint {}",
                      who, ps, due ? "lacks" : "holds", rank, i, due ? "has" : "does not have"));
    }
  }
}

Ledger::Line& Ledger::line(uint64_t epoch) {
  return lines_.try_emplace(epoch, base_).first->second;
}

Ledger::Line& Ledger::lineOfCut(uint64_t epoch) {
  const auto earlier = earlier_.find(epoch);
  const bool is_earlier = !lines_.contains(epoch) && earlier != earlier_.end();
  return is_earlier ? earlier->second : line(epoch);
}

// What was answered as applied holds as far as it is in the checkpoint.
Ledger::Line Ledger::lineFrom(const Line& before, uint64_t step,
                              std::span<const SavedArena> restored) const {
  Line line;
  line.first_process = first_process_;
  for (uint32_t ps = 0; ps < restored.size(); ++ps) {
    line.restored.push_back(restored[ps].values);
    line.marks[ps] = restored[ps].values[0];
  }
  line.by_step = before.by_step;
  line.by_step.erase(line.by_step.upper_bound(restored.empty() ? 0 : step), line.by_step.end());
  for (const Push& push : before.applied) {
    const bool in = !restored.empty() &&
                    std::none_of(line.restored.begin(), line.restored.end(),
                                 [&](const auto& arena) { return arena[cell(push)] == 0; });
    if (in) line.applied.insert(push);
  }
  return line;
}

void Ledger::beginLife(std::vector<uint32_t> first_process, uint64_t epoch, uint64_t step,
                       std::span<const SavedArena> restored) {
  finals_ = 0;
  first_process_ = std::move(first_process);
  base_ = lineFrom(line(epoch), step, restored);
  earlier_ = std::exchange(lines_, {});
  staleness_.beginLife();
  furthest_step_ = 0;
}

void Ledger::goBack(uint64_t epoch, uint64_t from_epoch, uint64_t step,
                    std::span<const SavedArena> restored) {
  lines_.insert_or_assign(epoch, lineFrom(lineOfCut(from_epoch), step, restored));
}

void Ledger::forgetInitial(uint32_t ps) {
  base_.marks.erase(ps);
  for (auto& [epoch, line] : lines_) line.marks.erase(ps);
}

uint64_t Ledger::applied() const {
  size_t most = 0;
  for (const auto& [epoch, line] : lines_) most = std::max(most, line.applied.size());
  return most;
}

void Ledger::writeInitial(uint32_t process, float* arena) const {
  std::fill_n(arena, elements_, 0.0F);
  arena[0] = static_cast<float>(1 + process);
}

// The mean over the contributions of a step divides by their number: the product is exact. A row is
// divided by those that have it.
void Ledger::writeGradient(const Push& push, const GradientPlace& place) const {
  const auto at = static_cast<uint32_t>(cell(push));
  if (!plan_.sparse) {
    place.values()[at] = -static_cast<float>(plan_.sync() ? plan_.aggregate : 1);
    return;
  }
  const SharedRows::Source source{push.rank, push.step, push.batch};
  std::vector<uint32_t> rows;
  std::vector<float> gradients;
  for (uint32_t index = 0; index < SharedRows::kCount; ++index)
    if (shared_.isNamed(source, index)) {
      rows.push_back(SharedRows::kFirst + index);
      gradients.push_back(shared_.gradientOf(source));
    }
  rows.push_back(at);
  gradients.push_back(-1);
  place.set_rows(std::array{static_cast<uint32_t>(rows.size())});
  std::memcpy(place.values(), rows.data(), rows.size() * sizeof(uint32_t));
  std::ranges::copy(gradients, place.values() + rows.size());
}

void Ledger::eraseGradient(const Push& push, const GradientPlace& place) const {
  if (plan_.sparse) return place.set_rows(std::array{uint32_t{0}});
  place.values()[cell(push)] = 0;
}

void Ledger::checkInitial(Line& line, uint32_t ps, float mark) {
  const auto [at, is_new] = line.marks.try_emplace(ps, mark);
  if (mark < 1 || at->second != mark)
    complain_(fmt::format("ps/{} was initialised by chief process {} and then shows {}", ps,
                          at->second - 1, mark - 1));
}

// What was in stays in, for whoever has seen it.
void Ledger::checkMonotone(Line& line, uint32_t rank, uint32_t process, uint32_t ps,
                           const float* arena) {
  std::vector<float>& seen = line.seen[{rank, process, ps}];
  const size_t count = kFirstCell + identities_;
  for (size_t i = kFirstCell; i < seen.size(); ++i) {
    if (arena[i] >= seen[i]) continue;
    return complain_(fmt::format("ps/{} took back what worker/{}.{} had seen (element {})", ps,
                                 rank, process, i));
  }
  seen.assign(arena, arena + count);
}

// [step][rank][batch] over all processes of the rank: a restarted worker computes the same again.
std::vector<uint8_t> Ledger::contributions(const float* arena, std::string_view who) const {
  std::vector<uint8_t> sums(plan_.steps * plan_.workers * batches_);
  const float* at = arena + kFirstCell;
  for (uint32_t rank = 0; rank < plan_.workers; ++rank)
    for (uint32_t process = 0; process < processes_; ++process)
      for (uint64_t step = 0; step < plan_.steps; ++step)
        for (uint32_t batch = 0; batch < batches_; ++batch)
          sums[(step * plan_.workers + rank) * batches_ + batch] +=
              static_cast<uint8_t>(*at++ != 0);
  for (const uint8_t sum : sums)
    if (sum > 1) {
      complain_(fmt::format("{} sees a contribution of one step from two processes", who));
      break;
    }
  return sums;
}

void Ledger::checkSync(Line& line, const ps::StepState& state, Arenas arenas,
                       std::string_view who) {
  const uint64_t at = state.done ? state.global_step : state.next_step;
  for (uint32_t ps = 0; ps < arenas.size(); ++ps) {
    const std::vector<uint8_t> sums = contributions(arenas[ps], who);
    for (uint64_t step = 0; step < plan_.steps; ++step) {
      const auto begin =
          sums.begin() + static_cast<std::ptrdiff_t>(step * plan_.workers * batches_);
      const int count = std::accumulate(begin, begin + plan_.workers * batches_, 0);
      const int due = step < at ? static_cast<int>(plan_.aggregate) : 0;
      if (count == due) continue;
      return complain_(
          fmt::format("{} at step {}: ps/{} holds {} contributions to step {}, {} are due", who, at,
                      ps, count, step, due));
    }
    const auto [known, is_new] = line.by_step.try_emplace(at, sums);
    if (known->second != sums)
      return complain_(fmt::format(
          "{}: the parameters of step {} on ps/{} hold another set than elsewhere", who, at, ps));
  }
}

void Ledger::checkAsync(const ps::StepState& state, Arenas arenas, std::string_view who) {
  const uint64_t held = countOf(arenas[0]);
  contributions(arenas[0], who);  // complains of one that is in from two processes
  if (held != state.global_step)
    complain_(fmt::format("{}: ps/0 says global step {} and holds {} contributions", who,
                          state.global_step, held));
  if (held > plan_.steps)
    complain_(fmt::format("{}: ps/0 holds {} contributions of a job of {} steps", who, held,
                          plan_.steps));
}

void Ledger::onParameters(uint32_t rank, uint32_t process, const ps::StepState& state,
                          Arenas arenas) {
  const std::string who = fmt::format("worker/{}.{}", rank, process);
  const uint64_t at = state.done ? state.global_step : state.next_step;
  furthest_step_ = std::max(furthest_step_, state.global_step);
  Line& line = this->line(state.epoch);
  for (uint32_t ps = 0; ps < arenas.size(); ++ps) {
    checkInitial(line, ps, arenas[ps][0]);
    checkMonotone(line, rank, process, ps, arenas[ps]);
    checkExact(ps, arenas[ps], at, who, expected_.shown());
    checkShared(ps, arenas[ps], at, who, true);
    checkEarlierLives(line, ps, arenas[ps], who);
    for (const Push& push : forbidden_)
      if (arenas[ps][cell(push)] != 0)
        complain_(fmt::format("ps/{} took {} of a fenced process", ps, push.text()));
    for (const Push& push : line.stale)
      if (arenas[ps][cell(push)] != 0)
        complain_(fmt::format("ps/{} holds {}, which was answered as stale", ps, push.text()));
    for (const Push& push : line.applied)
      if (push.rank == rank && push.process == process && !plan_.sync() &&
          arenas[ps][cell(push)] == 0)
        complain_(fmt::format("ps/{} lacks {}, which was answered as applied", ps, push.text()));
  }
  plan_.sync() ? checkSync(line, state, arenas, who) : checkAsync(state, arenas, who);
  const auto holds = [&](uint32_t ps, uint32_t of, uint32_t of_process, uint64_t step) {
    return arenas[ps][cell({of, of_process, step, 0})] != 0;
  };
  if (const auto fault = staleness_.fault(rank, process, state, holds))
    complain_(fmt::format("{}: {}", who, *fault));
}

// async: a batch that was answered as applied is in on every ps or on none. A worker that died in
// the middle of its push may leave one that isn't; the step of a checkpoint counts the pushes that
// are in on ps/0, whatever became of those.
void Ledger::onCheckpoint(uint64_t epoch, uint64_t step, std::span<const SavedArena> saved,
                          bool torn) {
  Line& line = lineOfCut(epoch);
  const std::string who = fmt::format("the checkpoint of step {}", step);
  std::vector<const float*> arenas;
  for (uint32_t ps = 0; ps < saved.size(); ++ps) {
    arenas.push_back(saved[ps].values.data());
    checkExact(ps, arenas[ps], step, who, expected_.saved());
    checkSlots(ps, saved[ps], step, who);
    checkShared(ps, arenas[ps], step, who, false);
    checkSharedSlots(ps, saved[ps], step, who);
    checkEarlierLives(line, ps, arenas[ps], who);
  }
  ps::StepState state;
  state.global_step = step;
  state.next_step = step;
  if (plan_.sync()) return checkSync(line, state, arenas, who);
  checkAsync(state, arenas, who);
  for (uint32_t ps = 1; ps < arenas.size(); ++ps) {
    for (const Push& push : line.applied)
      if (holdsBatch(push, arenas[ps]) != holdsBatch(push, arenas[0]))
        complain_(
            fmt::format("{} holds {}, which was answered as applied, either on ps/0 or on "
                        "ps/{}",
                        who, push.text(), ps));
    for (size_t i = kFirstCell; !torn && i < kFirstCell + identities_; ++i)
      if ((arenas[ps][i] != 0) != (arenas[0][i] != 0))
        return complain_(
            fmt::format("{} holds other contributions on ps/{} than on ps/0", who, ps));
  }
}

// From whichever process of its rank: one that died may have been heard by some ps, and the next
// one, which computed the same again, by the others.
bool Ledger::holdsBatch(Push push, const float* arena) const {
  for (push.process = 0; push.process < processes_; ++push.process)
    if (arena[cell(push)] != 0) return true;
  return false;
}

void Ledger::onComputed(const std::string& who, Copies begun_with, Arenas arenas) const {
  for (size_t ps = 0; ps < arenas.size(); ++ps)
    if (!std::equal(begun_with[ps].begin(), begun_with[ps].end(), arenas[ps]))
      complain_(fmt::format("parameters of ps/{} changed while {} computed with them", ps, who));
}

void Ledger::onAnswer(const Push& push, const ps::StepState& state, Arenas arenas) {
  if (forbidden_.contains(push))
    complain_(fmt::format("{} of a fenced process was answered", push.text()));
  if (state.outcome == ps::Outcome::kQueued) return;
  if (state.outcome == ps::Outcome::kApplied) {
    line(state.epoch).applied.insert(push);
    if (plan_.sync()) {
      const std::vector<uint8_t> sums = contributions(arenas[0], push.text());
      if (sums[(push.step * plan_.workers + push.rank) * batches_ + push.batch] != 1)
        complain_(fmt::format("{} was answered as applied and is not in", push.text()));
    }
  } else {
    stale_total_ += line(state.epoch).stale.insert(push).second;
  }
  onParameters(push.rank, push.process, state, arenas);
}

void Ledger::onFinal(uint32_t process, const ps::StepState& state, Arenas arenas, bool stopped) {
  ++finals_;
  final_step_ = state.global_step;
  const bool right = stopped ? state.global_step <= plan_.steps : state.global_step == plan_.steps;
  if (!right)
    complain_(fmt::format("the job ends at step {} of {}", state.global_step, plan_.steps));
  onParameters(kChief.index, process, state, arenas);
  if (plan_.sync()) return;
  for (uint32_t ps = 0; ps < arenas.size(); ++ps)
    for (const Push& push : line(state.epoch).applied)
      if (arenas[ps][cell(push)] == 0)
        complain_(fmt::format("at the end ps/{} lacks {}, which was answered as applied", ps,
                              push.text()));
}

}  // namespace dtf::sim
