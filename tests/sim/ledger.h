#pragma once

// What the parameters prove. Every contribution (rank, process, step, batch) has an element of its
// own in every arena, and its gradient adds exactly 1 there: so an arena says which contributions
// are in it, and how often.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/ps/parameter_client.h"
#include "tests/sim/plan.h"

namespace dtf::sim {

// One push of one process.
struct Push {
  uint32_t rank = 0;
  uint32_t process = 0;
  uint64_t step = 0;
  uint32_t batch = 0;
  auto operator<=>(const Push&) const = default;
  std::string text() const;
};

// Borrows: `plan`. `complain` is told each broken promise.
class Ledger {
 public:
  Ledger(const Plan& plan, std::function<void(std::string)> complain);

  uint64_t elements() const { return elements_; }
  void writeInitial(uint32_t process, float* arena) const;
  void writeGradient(const Push& push, float* arena) const;
  void eraseGradient(const Push& push, float* arena) const { arena[cell(push)] = 0; }

  using Arenas = std::span<const float* const>;  // one per ps
  // A process was given parameters and told `state`.
  void onParameters(uint32_t rank, uint32_t process, const ps::StepState& state, Arenas arenas);
  // Its push was answered; `parameters` came unless it was queued.
  void onAnswer(const Push& push, const ps::StepState& state, Arenas arenas);
  // A process that was replaced or lost before it pushed: the push may not be answered, nor show.
  void forbid(const Push& push) { forbidden_.insert(push); }
  // The chief has the parameters that the job ends with.
  void onFinal(uint32_t process, const ps::StepState& state, Arenas arenas);
  // A checkpoint holds these arenas.
  void onCheckpoint(uint64_t step, Arenas arenas);
  uint64_t finals() const { return finals_; }
  uint64_t applied() const { return applied_.size(); }
  uint64_t stale() const { return stale_.size(); }
  uint64_t forbidden() const { return forbidden_.size(); }

 private:
  size_t cell(const Push& push) const;
  std::vector<uint8_t> contributions(const float* arena, std::string_view who) const;
  void checkInitial(uint32_t ps, float mark);
  void checkMonotone(uint32_t rank, uint32_t process, uint32_t ps, const float* arena);
  void checkSync(const ps::StepState& state, Arenas arenas, std::string_view who);
  void checkAsync(const ps::StepState& state, Arenas arenas, std::string_view who);

  const Plan& plan_;
  const std::function<void(std::string)> complain_;
  const uint32_t batches_;
  uint64_t identities_ = 0;
  uint64_t elements_ = 0;
  std::map<uint32_t, float> marks_;                   // per ps: who initialised it
  std::map<uint64_t, std::vector<uint8_t>> by_step_;  // sync: what the parameters of a step hold
  // Per process and ps: the arena it saw last.
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<float>> seen_;
  std::set<Push> applied_;  // told so
  std::set<Push> stale_;    // told so
  std::set<Push> forbidden_;
  uint64_t finals_ = 0;
};

}  // namespace dtf::sim
