#pragma once

// What the parameters prove. Every contribution (rank, process, step, batch) has an element of its
// own in every arena, where its gradient is -1 and every other's 0, or, where the plan has sparse
// variables, nobody else's gradient has that row: so an arena says which contributions are in it,
// and with those what the rows must be that several name (shared_rows.h). What such an element and
// its slots must be, to the bit, says a reference store that is given the same updates: so it also
// says in which update, and that all that came after were applied once.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/ps/parameter_client.h"
#include "tests/sim/expected_cells.h"
#include "tests/sim/plan.h"
#include "tests/sim/shared_rows.h"
#include "tests/sim/staleness_check.h"

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

// One ps's part of a checkpoint.
struct SavedArena {
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
};

// Where a gradient for one ps is written: what a ps::ParameterClient has.
struct GradientPlace {
  std::function<void(std::span<const uint32_t> row_counts)> set_rows;
  std::function<float*()> values;
};

// Borrows: `plan`. `complain` is told each broken promise.
class Ledger {
 public:
  Ledger(const Plan& plan, std::function<void(std::string)> complain);

  uint64_t elements() const { return elements_; }
  uint32_t slots() const { return static_cast<uint32_t>(expected_.slots().size()); }
  void writeInitial(uint32_t process, float* arena) const;
  void writeGradient(const Push& push, const GradientPlace& place) const;
  void eraseGradient(const Push& push, const GradientPlace& place) const;

  void complain(std::string why) const { complain_(std::move(why)); }

  using Arenas = std::span<const float* const>;  // one per ps
  // A process was given parameters and told `state`.
  void onParameters(uint32_t rank, uint32_t process, const ps::StepState& state, Arenas arenas);
  // `who` has computed a batch from parameters that were `begun_with`.
  using Copies = std::span<const std::vector<float>>;  // likewise
  void onComputed(const std::string& who, Copies begun_with, Arenas arenas) const;
  // That anybody was told in this life.
  uint64_t furthestStep() const { return furthest_step_; }
  // Its push was answered; `parameters` came unless it was queued.
  void onAnswer(const Push& push, const ps::StepState& state, Arenas arenas);
  // A process that was replaced or lost before it pushed: the push may not be answered, nor show.
  void forbid(const Push& push) { forbidden_.insert(push); }
  // The chief has the parameters that the job ends with; `stopped`: it was asked to end early.
  void onFinal(uint32_t process, const ps::StepState& state, Arenas arenas, bool stopped);
  // A checkpoint holds this; `torn`: a worker may have died between the two halves of a push.
  void onCheckpoint(uint64_t epoch, uint64_t step, std::span<const SavedArena> arenas, bool torn);
  // Everything starts again from a checkpoint (`restored` is empty: from nothing), which was of
  // `epoch`. Process numbers of each rank go on from `first_process`.
  void beginLife(std::vector<uint32_t> first_process, uint64_t epoch, uint64_t step,
                 std::span<const SavedArena> restored);
  // All ps are about to go back to a checkpoint: what is of `epoch` goes on from there.
  void goBack(uint64_t epoch, uint64_t from_epoch, uint64_t step,
              std::span<const SavedArena> restored);
  // A ps was lost: who initialised it may be another chief next time.
  void forgetInitial(uint32_t ps);
  uint64_t finals() const { return finals_; }         // in this life
  uint64_t finalStep() const { return final_step_; }  // of the last of them
  uint64_t applied() const;                           // in this life, of the epoch that has most
  uint64_t stale() const { return stale_total_; }
  uint64_t forbidden() const { return forbidden_.size(); }

 private:
  // One epoch: a line of history.
  struct Line {
    std::vector<uint32_t> first_process;               // of each rank, of its life
    std::vector<std::vector<float>> restored;          // per ps; empty: it began anew
    std::map<uint32_t, float> marks;                   // per ps: who initialised it
    std::map<uint64_t, std::vector<uint8_t>> by_step;  // sync: what the parameters of a step hold
    // Per process and ps: the arena it saw last.
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<float>> seen;
    std::set<Push> applied;  // told so
    std::set<Push> stale;    // told so
  };
  Line& line(uint64_t epoch);
  Line& lineOfCut(uint64_t epoch);  // a snapshot may be of the life before
  Line lineFrom(const Line& before, uint64_t step, std::span<const SavedArena> restored) const;
  size_t cell(const Push& push) const;
  std::vector<uint8_t> contributions(const float* arena, std::string_view who) const;
  uint64_t countOf(const float* arena) const;
  void checkExact(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                  const ExpectedCells::Table& expected) const;
  void checkSlots(uint32_t ps, const SavedArena& saved, uint64_t step, std::string_view who) const;
  std::vector<std::vector<SharedRows::Source>> updatesIn(const float* arena, uint64_t step) const;
  void checkShared(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                   bool is_shown) const;
  void checkSharedSlots(uint32_t ps, const SavedArena& saved, uint64_t step,
                        std::string_view who) const;
  uint64_t stepOfCell(size_t cell) const;
  bool holdsBatch(Push push, const float* arena) const;
  void checkEarlierLives(const Line& line, uint32_t ps, const float* arena,
                         std::string_view who) const;
  void checkInitial(Line& line, uint32_t ps, float mark);
  void checkMonotone(Line& line, uint32_t rank, uint32_t process, uint32_t ps, const float* arena);
  void checkSync(Line& line, const ps::StepState& state, Arenas arenas, std::string_view who);
  void checkAsync(const ps::StepState& state, Arenas arenas, std::string_view who);

  const Plan& plan_;
  const std::function<void(std::string)> complain_;
  const uint32_t batches_;
  const uint32_t processes_;  // of a rank, over all lives
  uint64_t identities_ = 0;
  uint64_t elements_ = 0;
  const ExpectedCells expected_;
  StalenessCheck staleness_;
  mutable SharedRows shared_;            // remembers what it has computed
  std::vector<uint32_t> first_process_;  // of this life
  std::map<uint64_t, Line> lines_;       // of this life
  std::map<uint64_t, Line> earlier_;     // of the life before
  Line base_;                            // what an epoch goes on from that nobody announced
  uint64_t stale_total_ = 0;
  std::set<Push> forbidden_;
  uint64_t finals_ = 0;
  uint64_t final_step_ = 0;
  uint64_t furthest_step_ = 0;
};

}  // namespace dtf::sim
