#pragma once

// Derives the history of a job from its parameters. Every contribution (rank, process, step, batch)
// has an element of its own in every arena: its gradient is -1 there, and 0 in the elements of all
// others. If the plan has sparse variables, no other contribution's gradient has that row.
// - An arena therefore shows its contributions, and they determine the rows that several workers
//   name (shared_rows.h).
// - A reference store that applies the same updates gives the exact bits of an element and its
//   slots. They show the update that brought it, and that all later updates were applied once.
// In a plan with epochs an element shows the number of its batch's examples, too. The gradient of
// an empty share has an element as well, which must stay 0.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "common/exchange/exchange_client.h"
#include "tests/sim/epoch_shares.h"
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
  BatchName name() const { return {rank, step, batch}; }
  std::string text() const;
};

// One ps's part of a checkpoint.
struct SavedArena {
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
};

// The place for the gradient of one ps, as in an exchange::ExchangeClient.
struct GradientPlace {
  std::function<void(std::span<const uint32_t> row_counts)> set_rows;
  std::function<float*()> values;
};

// Borrows: `plan`. Calls `complain` with each broken promise.
class Ledger {
 public:
  Ledger(const Plan& plan, std::function<void(std::string)> complain);

  uint64_t elements() const { return elements_; }
  uint32_t slots() const { return expected_.slots(); }
  void writeInitial(uint32_t process, float* arena) const;
  // `weights`: as its worker weighs the batch.
  void writeGradient(const Push& push, const BatchWeights& weights, uint32_t ps,
                     const GradientPlace& place) const;
  void eraseGradient(const Push& push, uint32_t ps, const GradientPlace& place) const;

  void complain(std::string why) const { complain_(std::move(why)); }

  // A process reads these examples for a batch.
  void onBatch(const Push& push, const cluster::BatchRange& range) const;
  // Whether the push is the last one of its worker's part of the epochs.
  bool endsPart(const Push& push) const {
    return shares_.exist() && !plan_.sync() && push.step + 1 == shares_.part(push.rank);
  }
  using Arenas = std::span<const float* const>;  // one per ps
  // A process received parameters and `state`.
  void onParameters(uint32_t rank, uint32_t process, const replication::StepState& state,
                    Arenas arenas);
  // `who` has computed a batch that it began with the parameters `begun_with`.
  using Copies = std::span<const std::vector<float>>;  // likewise
  void onComputed(const std::string& who, Copies begun_with, Arenas arenas) const;
  // The furthest step that any process has received in this life.
  uint64_t furthestStep() const { return furthest_step_; }
  // A push was answered; `arenas` are its parameters unless it was queued.
  void onAnswer(const Push& push, const replication::StepState& state, Arenas arenas);
  // With epochs: a lost worker may be given up from now on. async: others do its part; backup
  // workers: a short step is made without it.
  void mayGiveUp() { may_give_up_ = true; }
  // Forbids a push of a process that was replaced or lost before it pushed: no answer, no effect.
  void forbid(const Push& push) { forbidden_.insert(push); }
  // The chief has the job's final parameters; `stopped`: the job was asked to end early.
  void onFinal(uint32_t process, const replication::StepState& state, Arenas arenas, bool stopped);
  // A checkpoint holds `arenas`; `torn`: a worker may have died between the two halves of a push.
  void onCheckpoint(uint64_t epoch, uint64_t step, std::span<const SavedArena> arenas, bool torn);
  // A new life begins from a checkpoint of `epoch` (`restored` empty: from nothing). Process
  // numbers of each rank continue from `first_process`.
  void beginLife(std::vector<uint32_t> first_process, uint64_t epoch, uint64_t step,
                 std::span<const SavedArena> restored);
  // All ps are about to go back to a checkpoint; `epoch` continues from there.
  void goBack(uint64_t epoch, uint64_t from_epoch, uint64_t step,
              std::span<const SavedArena> restored);
  // A ps was lost: its next process may be initialised by another chief.
  void forgetInitial(uint32_t ps);
  uint64_t finals() const { return final_.count; }      // in this life
  uint64_t finalStep() const { return final_.step; }    // of the last of them
  uint64_t givenUp() const { return final_.given_up; }  // steps of parts that others did, likewise
  // The gradients that a ps applies from step `begin` to the end of this life.
  uint64_t gradientsDue(uint64_t begin) const;
  uint64_t applied() const;  // in this life, of the epoch that has most
  uint64_t stale() const { return stale_total_; }
  uint64_t forbidden() const { return forbidden_.size(); }

 private:
  // One epoch: a line of history.
  struct Line {
    std::vector<uint32_t> first_process;               // of each rank, in its life
    std::vector<std::vector<float>> restored;          // per ps; empty: it began anew
    std::map<uint32_t, float> marks;                   // per ps: the process that initialised it
    std::map<uint64_t, std::vector<uint8_t>> by_step;  // sync: contributions up to a step
    // Per process and ps: the arena it saw last.
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<float>> seen;
    std::set<Push> applied;  // answered so
    std::set<Push> stale;    // answered so
  };
  using Sets = std::vector<EpochShares::Set>;  // sync: by step
  static constexpr size_t kFirstCell = 16;
  static_assert(kFirstCell >= SharedRows::kFirst + SharedRows::kCount);

  struct Final {
    uint64_t count = 0;
    uint64_t step = 0;
    uint64_t given_up = 0;
    Sets sets;
  };
  Line& line(uint64_t epoch);
  Line& lineOfCut(uint64_t epoch);  // a snapshot may be of the life before
  Line lineFrom(const Line& before, uint64_t step, std::span<const SavedArena> restored) const;
  size_t cell(const Push& push) const;
  Push pushOf(size_t cell) const;
  std::vector<uint8_t> contributions(const float* arena, std::string_view who) const;
  uint64_t countOf(const float* arena) const;
  Sets setsOf(const float* arena) const;
  void checkExact(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                  ExpectedCells::As as) const;
  const ExpectedCells::Tables& dueOf(uint32_t ps, size_t cell, const Sets& sets) const;
  void checkExactAsync(uint32_t ps, const float* arena, std::string_view who,
                       ExpectedCells::As as) const;
  void checkSlots(uint32_t ps, const SavedArena& saved, uint64_t step, std::string_view who) const;
  std::vector<std::vector<SharedRows::Source>> updatesIn(const float* arena, uint64_t step) const;
  void checkShared(uint32_t ps, const float* arena, uint64_t step, std::string_view who,
                   bool is_shown) const;
  void checkSharedSlots(uint32_t ps, const SavedArena& saved, uint64_t step,
                        std::string_view who) const;
  bool holdsBatch(Push push, const float* arena) const;
  void checkEarlierLives(const Line& line, uint32_t ps, const float* arena,
                         std::string_view who) const;
  void checkInitial(Line& line, uint32_t ps, float mark);
  void checkMonotone(Line& line, uint32_t rank, uint32_t process, uint32_t ps, const float* arena);
  void checkSync(Line& line, const replication::StepState& state, Arenas arenas,
                 std::string_view who);
  void checkAsync(const replication::StepState& state, Arenas arenas, std::string_view who);
  void checkParts(const std::vector<uint8_t>& sums, std::string_view who) const;
  void checkEpochs(const float* arena, bool is_whole);

  const Plan& plan_;
  const std::function<void(std::string)> complain_;
  const uint32_t batches_;
  const uint32_t processes_;  // of a rank, over all lives
  uint64_t identities_ = 0;
  uint64_t elements_ = 0;
  const EpochShares shares_;
  const ExpectedCells expected_;
  StalenessCheck staleness_;
  mutable SharedRows shared_;            // caches its results
  std::vector<uint32_t> first_process_;  // of this life
  std::map<uint64_t, Line> lines_;       // of this life
  std::map<uint64_t, Line> earlier_;     // of the life before
  Line base_;                            // starts each epoch that nobody announced
  uint64_t stale_total_ = 0;
  std::set<Push> forbidden_;
  bool may_give_up_ = false;
  Final final_;
  uint64_t furthest_step_ = 0;
};

}  // namespace dtf::sim
