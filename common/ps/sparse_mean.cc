#include "common/ps/sparse_mean.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/ps/gradient_math.h"
#include "common/ps/row_merge.h"

namespace dtf::ps {

namespace {

void meanInto(std::span<const float* const> values, uint64_t begin, uint64_t n, float* mean) {
  if (values.size() > 1) return meanOf(values, begin, n, mean);
  std::memcpy(mean, values[0] + begin, n * sizeof(float));
}

}  // namespace

SparseMean::SparseMean(const GradientLayout& layout, std::span<const Gradient> gradients)
    : layout_(layout), rows_(layout.sparse().size()) {
  DTF_CHECK(!gradients.empty() && !rows_.empty());
  std::vector<std::vector<uint32_t>> named(rows_.size());
  for (const Gradient& gradient : gradients) dense_.push_back(gradient.values.data());
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (const Gradient& gradient : gradients) rows_[i].push_back(layout.rows(gradient, i));
    for (RowMerge merge(rows_[i], layout.sparse()[i].row_elements); !merge.done(); merge.next())
      named[i].push_back(merge.row());
    row_counts_.push_back(static_cast<uint32_t>(named[i].size()));
  }
  mean_ = std::make_shared<Buffer>(layout.elementsOf(row_counts_) * sizeof(float));
  for (size_t i = 0; i < rows_.size(); ++i)
    if (!named[i].empty())
      std::memcpy(mean_->as<float>() + layout.rowsAt(row_counts_, i), named[i].data(),
                  named[i].size() * sizeof(uint32_t));
}

void SparseMean::run(uint64_t begin, uint64_t end) {
  if (const uint64_t stop = std::min(end, layout_.denseElements()); begin < stop)
    meanInto(dense_, begin, stop - begin, mean_->as<float>() + begin);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const SparseSlice& slice = layout_.sparse()[i];
    const uint64_t first = std::max(begin, slice.offset);
    const uint64_t stop = std::min(end, slice.end());
    if (first < stop) runRows(i, first, stop);
  }
}

void SparseMean::runRows(size_t index, uint64_t begin, uint64_t end) {
  const SparseSlice& slice = layout_.sparse()[index];
  const uint64_t first_row = (begin - slice.offset) / slice.row_elements;
  float* const ids = mean_->as<float>() + layout_.rowsAt(row_counts_, index);
  const std::span<const uint32_t> named(reinterpret_cast<const uint32_t*>(ids), row_counts_[index]);
  auto at = static_cast<uint64_t>(std::ranges::lower_bound(named, first_row) - named.begin());
  for (RowMerge merge(rows_[index], slice.row_elements, first_row); !merge.done(); merge.next()) {
    const uint64_t row_begin = slice.offset + merge.row() * slice.row_elements;
    if (row_begin >= end) break;
    DTF_CHECK(named[at] == merge.row());
    const uint64_t from = std::max(row_begin, begin) - row_begin;
    const uint64_t n = std::min(row_begin + slice.row_elements, end) - row_begin - from;
    meanInto(merge.values(), from, n, ids + named.size() + at++ * slice.row_elements + from);
  }
}

Gradient SparseMean::take() {
  const uint64_t elements = layout_.elementsOf(row_counts_);
  return {{mean_->as<float>(), elements}, std::move(mean_), std::move(row_counts_)};
}

}  // namespace dtf::ps
