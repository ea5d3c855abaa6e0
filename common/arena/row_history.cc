#include "common/arena/row_history.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dtf::arena {

namespace {

// An arena that is more updates behind is copied whole.
constexpr size_t kUpdatesMax = 32;
// Divisors of the tables' elements: the most ids kept, and the most elements copied row by row.
constexpr uint64_t kIdsShare = 8;
constexpr uint64_t kCopiedShare = 2;

uint64_t tableElements(const GradientLayout& layout) {
  uint64_t elements = 0;
  for (const SparseSlice& slice : layout.sparse()) elements += slice.end() - slice.offset;
  return elements;
}

}  // namespace

void ChangedRows::assign(const GradientLayout& layout, std::span<const Gradient> gradients) {
  ids_.clear();
  begins_.assign(1, 0);
  lists_ = gradients.size();
  elements_ = 0;
  for (size_t i = 0; i < layout.sparse().size(); ++i)
    for (const Gradient& gradient : gradients) {
      const std::span<const uint32_t> rows = layout.rows(gradient, i).rows;
      ids_.insert(ids_.end(), rows.begin(), rows.end());
      begins_.push_back(ids_.size());
      elements_ += rows.size() * layout.sparse()[i].row_elements;
    }
}

void copyMissing(const MissingRows& missing, const SparseSlice& slice, size_t index,
                 const float* from, float* to, uint64_t begin, uint64_t end) {
  const uint64_t first_row = (begin - slice.offset) / slice.row_elements;
  for (const auto& changed : missing)
    changed->forEach(index, [&](std::span<const uint32_t> rows) {
      for (auto row = std::ranges::lower_bound(rows, first_row); row != rows.end(); ++row) {
        const uint64_t row_begin = slice.offset + *row * slice.row_elements;
        if (row_begin >= end) break;
        const uint64_t at = std::max(row_begin, begin);
        const uint64_t stop = std::min(row_begin + slice.row_elements, end);
        std::memcpy(to + at, from + at, (stop - at) * sizeof(float));
      }
    });
}

void RowHistory::restart() {
  ++state_;
  changes_.clear();
  ids_ = 0;
}

void RowHistory::add(std::span<const Gradient> gradients) {
  std::shared_ptr<ChangedRows> changed = unused();
  changed->assign(*layout_, gradients);
  ++state_;
  ids_ += changed->count();
  changes_.push_front(std::move(changed));
  while (changes_.size() > kUpdatesMax || ids_ > tableElements(*layout_) / kIdsShare)
    forgetOldest();
}

std::shared_ptr<ChangedRows> RowHistory::unused() {
  // A dropped job may still read it.
  if (spare_ == nullptr || spare_.use_count() > 1) return std::make_shared<ChangedRows>();
  return std::exchange(spare_, nullptr);
}

void RowHistory::forgetOldest() {
  ids_ -= changes_.back()->count();
  spare_ = std::move(changes_.back());
  changes_.pop_back();
}

std::optional<MissingRows> RowHistory::missingSince(uint64_t state) const {
  if (state == 0 || state_ - state > changes_.size()) return std::nullopt;
  MissingRows missing(changes_.begin(),
                      changes_.begin() + static_cast<std::ptrdiff_t>(state_ - state));
  uint64_t elements = 0;
  for (const auto& changed : missing) elements += changed->elements();
  if (elements > tableElements(*layout_) / kCopiedShare) return std::nullopt;
  return missing;
}

}  // namespace dtf::arena
