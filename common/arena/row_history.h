#pragma once

// The rows of a shard's sparse variables that the last updates changed. An arena with the
// parameters of some updates ago needs only these rows copied, not whole tables.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/arena/gradient_layout.h"

namespace dtf::arena {

// The rows that one update named: for each sparse slice one list for each gradient, ascending.
class ChangedRows {
 public:
  void assign(const GradientLayout& layout, std::span<const Gradient> gradients);
  size_t count() const { return ids_.size(); }
  uint64_t elements() const { return elements_; }
  // Visits the lists of sparse slice `index`, one for each gradient.
  void forEach(size_t index, const auto& visit) const {
    for (size_t i = index * lists_; i < (index + 1) * lists_; ++i)
      visit(std::span(ids_).subspan(begins_[i], begins_[i + 1] - begins_[i]));
  }

 private:
  std::vector<uint32_t> ids_;
  std::vector<size_t> begins_;  // of each list, by slice, and the end of the last
  size_t lists_ = 0;            // of each slice
  uint64_t elements_ = 0;
};

// The rows that an arena lacks: the changes of each update since then.
using MissingRows = std::vector<std::shared_ptr<const ChangedRows>>;

// Copies the missing rows of sparse slice `index`, as far as they lie in elements [begin, end) of
// the arena. Thread-safe for disjoint ranges.
void copyMissing(const MissingRows& missing, const SparseSlice& slice, size_t index,
                 const float* from, float* to, uint64_t begin, uint64_t end);

// Owns: the ids, in memory of at most an eighth of the arena's size.
// Threads: loop-thread only; results of missingSince() may be read on any thread.
// Blocks: never.
class RowHistory {
 public:
  explicit RowHistory(std::shared_ptr<const GradientLayout> layout) : layout_(std::move(layout)) {}

  // The state of the parameters, counted by updates: 1, 2, ... Arenas are marked with it.
  uint64_t state() const { return state_; }
  // Begins a state with other values, which are no update of an earlier state.
  void restart();
  // Begins the next state, made by an update with `gradients`.
  void add(std::span<const Gradient> gradients);
  // Returns the rows changed since `state` (0: unknown values); nullopt: they are not known, or so
  // many that copying whole tables costs no more.
  std::optional<MissingRows> missingSince(uint64_t state) const;

 private:
  std::shared_ptr<ChangedRows> unused();
  void forgetOldest();

  const std::shared_ptr<const GradientLayout> layout_;
  uint64_t state_ = 0;
  std::deque<std::shared_ptr<ChangedRows>> changes_;  // the newest first
  size_t ids_ = 0;                                    // in all of them
  std::shared_ptr<ChangedRows> spare_;                // its memory is used again
};

}  // namespace dtf::arena
