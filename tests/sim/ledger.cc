#include "tests/sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "common/optimizer/parameter_store.h"

namespace dtf::sim {

std::string Push::text() const {
  return fmt::format("(worker/{}.{} step {} batch {})", rank, process, step, batch);
}

Ledger::Ledger(const Plan& plan, std::function<void(std::string)> complain)
    : plan_(plan),
      complain_(std::move(complain)),
      batches_(plan.batchesMax()),
      processes_(Plan::processesMax(plan.lives.size() - 1)),
      shares_(plan),
      // In async mode, half pushes of workers that died count as well, except on ps/0.
      expected_(plan, plan.steps + (plan.sync() ? 0 : plan.workers * processes_)),
      staleness_(plan, shares_),
      shared_(plan, shares_),
      first_process_(plan.workers) {
  base_.first_process = first_process_;
  identities_ = uint64_t{plan.workers} * processes_ * plan.steps * batches_;
  elements_ = (kFirstCell + identities_ + 15) / 16 * 16;
}

size_t Ledger::cell(const Push& push) const {
  return kFirstCell +
         ((uint64_t{push.rank} * processes_ + push.process) * plan_.steps + push.step) * batches_ +
         push.batch;
}

Push Ledger::pushOf(size_t cell) const {
  uint64_t rest = cell - kFirstCell;
  Push push;
  push.batch = static_cast<uint32_t>(rest % batches_);
  push.step = (rest /= batches_) % plan_.steps;
  push.process = static_cast<uint32_t>((rest /= plan_.steps) % processes_);
  push.rank = static_cast<uint32_t>(rest / processes_);
  return push;
}

uint64_t Ledger::countOf(const float* arena) const {
  return static_cast<uint64_t>(identities_) -
         static_cast<uint64_t>(
             std::count(arena + kFirstCell, arena + kFirstCell + identities_, 0.0F));
}

// Checks that contributions of earlier lives are in exactly where the checkpoint had them.
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

// Pushes answered as applied count from here only if the checkpoint holds them.
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
  final_ = {};
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

// An empty share weighs nothing, so its gradient must not matter: it is written unweighed.
void Ledger::writeGradient(const Push& push, const BatchWeights& weights, uint32_t ps,
                           const GradientPlace& place) const {
  const auto at = static_cast<uint32_t>(cell(push));
  const SharedRows::Source source = push.name();
  const bool is_empty = shares_.examples(source) == 0;
  const float gradient = shares_.gradient(plan_.isSparse(ps));
  if (!plan_.isSparse(ps)) {
    place.values()[at] = is_empty ? gradient : gradient * weights.gradient;
    return;
  }
  std::vector<uint32_t> rows;
  std::vector<float> gradients;
  for (uint32_t index = 0; index < SharedRows::kCount; ++index)
    if (shared_.isNamed(source, index)) {
      rows.push_back(SharedRows::kFirst + index);
      gradients.push_back(shared_.gradientOf(source) * weights.rows);
    }
  rows.push_back(at);
  gradients.push_back(is_empty ? gradient : gradient * weights.rows);
  place.set_rows(std::array{static_cast<uint32_t>(rows.size())});
  std::memcpy(place.values(), rows.data(), rows.size() * sizeof(uint32_t));
  std::ranges::copy(gradients, place.values() + rows.size());
}

void Ledger::eraseGradient(const Push& push, uint32_t ps, const GradientPlace& place) const {
  if (plan_.isSparse(ps)) return place.set_rows(std::array{uint32_t{0}});
  place.values()[cell(push)] = 0;
}

void Ledger::checkInitial(Line& line, uint32_t ps, float mark) {
  const auto [at, is_new] = line.marks.try_emplace(ps, mark);
  if (mark < 1 || at->second != mark)
    complain_(fmt::format("ps/{} was initialised by chief process {} and then shows {}", ps,
                          at->second - 1, mark - 1));
}

// Checks that a process still sees every contribution it has seen before.
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

void Ledger::checkSync(Line& line, const replication::StepState& state, Arenas arenas,
                       std::string_view who) {
  const uint64_t at = state.done ? state.global_step : state.next_step;
  for (uint32_t ps = 0; ps < arenas.size(); ++ps) {
    const std::vector<uint8_t> sums = contributions(arenas[ps], who);
    for (uint64_t step = 0; step < plan_.steps; ++step) {
      const auto begin =
          sums.begin() + static_cast<std::ptrdiff_t>(step * plan_.workers * batches_);
      const int count = std::accumulate(begin, begin + plan_.workers * batches_, 0);
      const int due = step < at ? static_cast<int>(shares_.due(step)) : 0;
      const bool may_lack = may_give_up_ && shares_.isShort(step) && count > 0 && count < due;
      if (count == due || may_lack) continue;
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

void Ledger::checkAsync(const replication::StepState& state, Arenas arenas, std::string_view who) {
  const uint64_t held = countOf(arenas[0]);
  checkParts(contributions(arenas[0], who), who);
  if (held != state.global_step)
    complain_(fmt::format("{}: ps/0 says global step {} and holds {} contributions", who,
                          state.global_step, held));
  if (held > plan_.steps)
    complain_(fmt::format("{}: ps/0 holds {} contributions of a job of {} steps", who, held,
                          plan_.steps));
}

void Ledger::onParameters(uint32_t rank, uint32_t process, const replication::StepState& state,
                          Arenas arenas) {
  const std::string who = fmt::format("worker/{}.{}", rank, process);
  const uint64_t at = state.done ? state.global_step : state.next_step;
  furthest_step_ = std::max(furthest_step_, state.global_step);
  Line& line = this->line(state.epoch);
  for (uint32_t ps = 0; ps < arenas.size(); ++ps) {
    checkInitial(line, ps, arenas[ps][0]);
    checkMonotone(line, rank, process, ps, arenas[ps]);
    checkExact(ps, arenas[ps], at, who, ExpectedCells::As::kShown);
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

// Checks that, in async mode, a batch answered as applied is on every ps or on none. A worker that
// died during its push may leave an unanswered one. The step of a checkpoint counts the pushes on
// ps/0, on other ps or not.
void Ledger::onCheckpoint(uint64_t epoch, uint64_t step, std::span<const SavedArena> saved,
                          bool torn) {
  Line& line = lineOfCut(epoch);
  const std::string who = fmt::format("the checkpoint of step {}", step);
  std::vector<const float*> arenas;
  for (uint32_t ps = 0; ps < saved.size(); ++ps) {
    arenas.push_back(saved[ps].values.data());
    checkExact(ps, arenas[ps], step, who, ExpectedCells::As::kSaved);
    checkSlots(ps, saved[ps], step, who);
    checkShared(ps, arenas[ps], step, who, false);
    checkSharedSlots(ps, saved[ps], step, who);
    checkEarlierLives(line, ps, arenas[ps], who);
  }
  replication::StepState state;
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

// Looks for the batch from any process of its rank: some ps may have the push of a process that
// died, the others that of its successor, which computed the same.
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

void Ledger::onAnswer(const Push& push, const replication::StepState& state, Arenas arenas) {
  if (forbidden_.contains(push))
    complain_(fmt::format("{} of a fenced process was answered", push.text()));
  if (state.outcome == replication::Outcome::kQueued) return;
  if (state.outcome == replication::Outcome::kApplied) {
    line(state.epoch).applied.insert(push);
    if (plan_.sync() && shares_.examples(push.name()) > 0) {
      const std::vector<uint8_t> sums = contributions(arenas[0], push.text());
      if (sums[(push.step * plan_.workers + push.rank) * batches_ + push.batch] != 1)
        complain_(fmt::format("{} was answered as applied and is not in", push.text()));
    }
  } else {
    stale_total_ += line(state.epoch).stale.insert(push).second;
  }
  onParameters(push.rank, push.process, state, arenas);
}

void Ledger::onFinal(uint32_t process, const replication::StepState& state, Arenas arenas,
                     bool stopped) {
  ++final_.count;
  final_.step = state.global_step;
  final_.sets = setsOf(arenas[0]);
  const bool right = stopped ? state.global_step <= plan_.steps : state.global_step == plan_.steps;
  if (!right)
    complain_(fmt::format("the job ends at step {} of {}", state.global_step, plan_.steps));
  onParameters(kChief.index, process, state, arenas);
  if (shares_.exist()) checkEpochs(arenas[0], state.global_step == plan_.steps);
  if (plan_.sync()) return;
  for (uint32_t ps = 0; ps < arenas.size(); ++ps)
    for (const Push& push : line(state.epoch).applied)
      if (arenas[ps][cell(push)] == 0)
        complain_(fmt::format("at the end ps/{} lacks {}, which was answered as applied", ps,
                              push.text()));
}

}  // namespace dtf::sim
