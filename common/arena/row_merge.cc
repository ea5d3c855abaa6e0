#include "common/arena/row_merge.h"

#include <algorithm>

#include "common/base/check.h"

namespace dtf::arena {

namespace {

RowsView behind(const RowsView& view, size_t rows, uint64_t row_elements) {
  return {view.rows.subspan(rows), view.values + rows * row_elements};
}

}  // namespace

RowMerge::RowMerge(std::span<const RowsView> gradients, uint64_t row_elements, uint64_t first)
    : row_elements_(row_elements) {
  left_.reserve(gradients.size());
  values_.reserve(gradients.size());
  for (const RowsView& view : gradients) {
    const auto from = std::ranges::lower_bound(view.rows, first);
    left_.push_back(behind(view, static_cast<size_t>(from - view.rows.begin()), row_elements));
  }
  find();
}

void RowMerge::next() {
  DTF_CHECK(!done());
  for (RowsView& view : left_)
    if (!view.rows.empty() && view.rows.front() == row_) view = behind(view, 1, row_elements_);
  find();
}

// Finds the lowest row that is left.
void RowMerge::find() {
  values_.clear();
  for (const RowsView& view : left_)
    if (!view.rows.empty() && (values_.empty() || view.rows.front() <= row_)) {
      if (values_.empty() || view.rows.front() < row_) {
        values_.clear();
      }
      row_ = view.rows.front();
      values_.push_back(view.values);
    }
}

}  // namespace dtf::arena
