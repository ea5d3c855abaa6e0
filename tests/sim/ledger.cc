#include "tests/sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/ps/parameter_store.h"

namespace dtf::sim {

namespace {

constexpr size_t kFirstCell = 16;

}  // namespace

std::string Push::text() const {
  return fmt::format("(worker/{}.{} step {} batch {})", rank, process, step, batch);
}

Ledger::Ledger(const Plan& plan, std::function<void(std::string)> complain)
    : plan_(plan), complain_(std::move(complain)), batches_(plan.batchesMax()) {
  identities_ = uint64_t{plan.workers} * kProcessesMax * plan.steps * batches_;
  elements_ = (kFirstCell + identities_ + 15) / 16 * 16;
  if (plan.slow_updates)
    elements_ = std::max(elements_, ps::kInlineUpdateBytes / sizeof(float) + 16);
}

size_t Ledger::cell(const Push& push) const {
  return kFirstCell +
         ((push.rank * kProcessesMax + push.process) * plan_.steps + push.step) * batches_ +
         push.batch;
}

void Ledger::writeInitial(uint32_t process, float* arena) const {
  std::fill_n(arena, elements_, 0.0F);
  arena[0] = static_cast<float>(1 + process);
}

// The mean over the contributions of a step divides by their number: the product is exact.
void Ledger::writeGradient(const Push& push, float* arena) const {
  arena[cell(push)] = -static_cast<float>(plan_.sync() ? plan_.aggregate : 1);
}

void Ledger::checkInitial(uint32_t ps, float mark) {
  const auto [at, is_new] = marks_.try_emplace(ps, mark);
  if (mark < 1 || at->second != mark)
    complain_(fmt::format("ps/{} was initialised by chief process {} and then shows {}", ps,
                          at->second - 1, mark - 1));
}

// What was in stays in, for whoever has seen it.
void Ledger::checkMonotone(uint32_t rank, uint32_t process, uint32_t ps, const float* arena) {
  std::vector<float>& seen = seen_[{rank, process, ps}];
  const size_t count = kFirstCell + identities_;
  for (size_t i = kFirstCell; i < count; ++i) {
    if (arena[i] == 0 || arena[i] == 1) continue;
    return complain_(
        fmt::format("ps/{} holds a contribution {} times (element {})", ps, arena[i], i));
  }
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
    for (uint32_t process = 0; process < kProcessesMax; ++process)
      for (uint64_t step = 0; step < plan_.steps; ++step)
        for (uint32_t batch = 0; batch < batches_; ++batch)
          sums[(step * plan_.workers + rank) * batches_ + batch] += static_cast<uint8_t>(*at++);
  for (const uint8_t sum : sums)
    if (sum > 1) {
      complain_(fmt::format("{} sees a contribution of one step from two processes", who));
      break;
    }
  return sums;
}

void Ledger::checkSync(const ps::StepState& state, Arenas arenas, std::string_view who) {
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
    const auto [known, is_new] = by_step_.try_emplace(at, sums);
    if (known->second != sums)
      return complain_(fmt::format(
          "{}: the parameters of step {} on ps/{} hold another set than elsewhere", who, at, ps));
  }
}

void Ledger::checkAsync(const ps::StepState& state, Arenas arenas, std::string_view who) {
  const float* first = arenas[0] + kFirstCell;
  const auto held = static_cast<uint64_t>(std::accumulate(first, first + identities_, 0.0));
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
  for (uint32_t ps = 0; ps < arenas.size(); ++ps) {
    checkInitial(ps, arenas[ps][0]);
    checkMonotone(rank, process, ps, arenas[ps]);
    for (const Push& push : forbidden_)
      if (arenas[ps][cell(push)] != 0)
        complain_(fmt::format("ps/{} took {} of a fenced process", ps, push.text()));
    for (const Push& push : stale_)
      if (arenas[ps][cell(push)] != 0)
        complain_(fmt::format("ps/{} holds {}, which was answered as stale", ps, push.text()));
    for (const Push& push : applied_)
      if (push.rank == rank && push.process == process && !plan_.sync() &&
          arenas[ps][cell(push)] != 1)
        complain_(fmt::format("ps/{} lacks {}, which was answered as applied", ps, push.text()));
  }
  plan_.sync() ? checkSync(state, arenas, who) : checkAsync(state, arenas, who);
}

// async: a push is in on every ps or on none. A worker that died in the middle of its push may
// leave one that isn't; then only ps/0's count is looked at.
void Ledger::onCheckpoint(uint64_t step, Arenas arenas) {
  const std::string who = fmt::format("the checkpoint of step {}", step);
  ps::StepState state;
  state.global_step = step;
  state.next_step = step;
  if (plan_.sync()) return checkSync(state, arenas, who);
  if (!plan_.faults.empty()) return;
  checkAsync(state, arenas, who);
  for (uint32_t ps = 1; ps < arenas.size(); ++ps)
    if (!std::equal(arenas[0] + kFirstCell, arenas[0] + kFirstCell + identities_,
                    arenas[ps] + kFirstCell))
      complain_(fmt::format("{} holds other contributions on ps/{} than on ps/0", who, ps));
}

void Ledger::onAnswer(const Push& push, const ps::StepState& state, Arenas arenas) {
  if (forbidden_.contains(push))
    complain_(fmt::format("{} of a fenced process was answered", push.text()));
  if (state.outcome == ps::Outcome::kQueued) return;
  if (state.outcome == ps::Outcome::kApplied) {
    applied_.insert(push);
    if (plan_.sync()) {
      const std::vector<uint8_t> sums = contributions(arenas[0], push.text());
      if (sums[(push.step * plan_.workers + push.rank) * batches_ + push.batch] != 1)
        complain_(fmt::format("{} was answered as applied and is not in", push.text()));
    }
  } else {
    stale_.insert(push);
  }
  onParameters(push.rank, push.process, state, arenas);
}

void Ledger::onFinal(uint32_t process, const ps::StepState& state, Arenas arenas) {
  ++finals_;
  if (state.global_step != plan_.steps || !state.done)
    complain_(fmt::format("the job ends at step {} of {}", state.global_step, plan_.steps));
  onParameters(kChief.index, process, state, arenas);
  if (plan_.sync()) return;
  for (uint32_t ps = 0; ps < arenas.size(); ++ps)
    for (const Push& push : applied_)
      if (arenas[ps][cell(push)] != 1)
        complain_(fmt::format("at the end ps/{} lacks {}, which was answered as applied", ps,
                              push.text()));
}

}  // namespace dtf::sim
