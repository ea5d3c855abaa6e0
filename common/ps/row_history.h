#pragma once

// Which rows of a shard's sparse variables the last updates changed: what an arena lacks that holds
// the parameters of some updates ago. Those rows are brought to it in place of whole tables.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/ps/gradient_layout.h"

namespace dtf::ps {

// The rows that one update named: of each sparse slice those of each gradient, ascending.
class ChangedRows {
 public:
  void assign(const GradientLayout& layout, std::span<const Gradient> gradients);
  size_t count() const { return ids_.size(); }
  uint64_t elements() const { return elements_; }
  // Those of sparse slice `index`, one list for each gradient.
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

// What an arena lacks: what each of the updates since then changed.
using MissingRows = std::vector<std::shared_ptr<const ChangedRows>>;

// Copies the rows of sparse slice `index` that are missing, as far as they lie in elements
// [begin, end) of the arena. Thread-safe for disjoint ranges.
void copyMissing(const MissingRows& missing, const SparseSlice& slice, size_t index,
                 const float* from, float* to, uint64_t begin, uint64_t end);

// Owns: the ids, in memory of an eighth of the arena's size at most.
// Threads: loop-thread only; what missingSince() gave travels.
// Blocks: never.
class RowHistory {
 public:
  explicit RowHistory(std::shared_ptr<const GradientLayout> layout) : layout_(std::move(layout)) {}

  // Parameters of one update or of none: 1, 2, ... An arena is marked with the state that it holds.
  uint64_t state() const { return state_; }
  // Other values, from which no update leads back.
  void restart();
  // The next state, made by an update with these gradients.
  void add(std::span<const Gradient> gradients);
  // nullopt: not known, or so many that copying whole tables costs no more. `state` 0: unknown
  // values.
  std::optional<MissingRows> missingSince(uint64_t state) const;

 private:
  std::shared_ptr<ChangedRows> unused();
  void forgetOldest();

  const std::shared_ptr<const GradientLayout> layout_;
  uint64_t state_ = 0;
  std::deque<std::shared_ptr<ChangedRows>> changes_;  // the newest first
  size_t ids_ = 0;                                    // in all of them
  std::shared_ptr<ChangedRows> spare_;                // whose memory is used again
};

}  // namespace dtf::ps
