#include "common/optimizer/sparse_mean.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/arena/row_merge.h"
#include "common/base/check.h"
#include "common/optimizer/gradient_math.h"

namespace dtf::optimizer {

namespace {

void meanInto(std::span<const float* const> values, std::span<const uint32_t> weights,
              uint64_t begin, uint64_t n, float* mean) {
  if (values.size() > 1) return meanOf(values, weights, begin, n, mean);
  std::memcpy(mean, values[0] + begin, n * sizeof(float));
}

}  // namespace

SparseMean::SparseMean(std::shared_ptr<const arena::GradientLayout> layout)
    : layout_(std::move(layout)), rows_(layout_->sparse().size()), named_(rows_.size()) {
  DTF_CHECK(!rows_.empty());
}

void SparseMean::begin(std::span<const arena::Gradient> gradients) {
  DTF_CHECK(!gradients.empty() && mean_ == nullptr);
  dense_.clear();
  weights_.clear();
  for (const arena::Gradient& gradient : gradients) {
    dense_.push_back(gradient.values.data());
    weights_.push_back(gradient.weight);
  }
  findRows(gradients);
  makeRoom();
  for (size_t i = 0; i < named_.size(); ++i) std::ranges::copy(named_[i], ids(i));
}

void SparseMean::findRows(std::span<const arena::Gradient> gradients) {
  row_counts_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].clear();
    named_[i].clear();
    for (const arena::Gradient& gradient : gradients)
      rows_[i].push_back(layout_->rows(gradient, i));
    for (arena::RowMerge merge(rows_[i], layout_->sparse()[i].row_elements); !merge.done();
         merge.next())
      named_[i].push_back(merge.row());
    row_counts_.push_back(static_cast<uint32_t>(named_[i].size()));
  }
}

// Takes a buffer that no gradient uses any more; a new one is half as large again as needed.
void SparseMean::makeRoom() {
  const uint64_t elements = layout_->elementsOf(row_counts_);
  const uint64_t bytes = elements * sizeof(float);
  for (std::shared_ptr<Buffer>& buffer : buffers_) {
    if (buffer != nullptr && buffer.use_count() > 1) continue;
    if (buffer == nullptr || buffer->bytes() < bytes)
      buffer = std::make_shared<Buffer>(bytes + bytes / 2);
    mean_ = buffer;
    break;
  }
  if (mean_ == nullptr) mean_ = std::make_shared<Buffer>(bytes);
  if (const uint64_t last = layout_->rowsAt(row_counts_, row_counts_.size()); last < elements)
    mean_->as<float>()[last] = 0;
}

uint32_t* SparseMean::ids(size_t index) {
  return reinterpret_cast<uint32_t*>(mean_->as<float>() + layout_->rowsAt(row_counts_, index));
}

void SparseMean::run(uint64_t begin, uint64_t end) {
  if (const uint64_t stop = std::min(end, layout_->denseElements()); begin < stop)
    meanInto(dense_, weights_, begin, stop - begin, mean_->as<float>() + begin);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const arena::SparseSlice& slice = layout_->sparse()[i];
    const uint64_t first = std::max(begin, slice.offset);
    const uint64_t stop = std::min(end, slice.end());
    if (first < stop) runRows(i, first, stop);
  }
}

void SparseMean::runRows(size_t index, uint64_t begin, uint64_t end) {
  const arena::SparseSlice& slice = layout_->sparse()[index];
  const uint64_t first_row = (begin - slice.offset) / slice.row_elements;
  const std::vector<uint32_t>& named = named_[index];
  float* const values = mean_->as<float>() + layout_->rowsAt(row_counts_, index) + named.size();
  auto at = static_cast<uint64_t>(std::ranges::lower_bound(named, first_row) - named.begin());
  for (arena::RowMerge merge(rows_[index], slice.row_elements, first_row); !merge.done();
       merge.next()) {
    const uint64_t row_begin = slice.offset + merge.row() * slice.row_elements;
    if (row_begin >= end) break;
    DTF_CHECK(named[at] == merge.row());
    const uint64_t from = std::max(row_begin, begin) - row_begin;
    const uint64_t n = std::min(row_begin + slice.row_elements, end) - row_begin - from;
    meanInto(merge.values(), {}, from, n, values + at++ * slice.row_elements + from);
  }
}

arena::Gradient SparseMean::take() {
  DTF_CHECK(mean_ != nullptr);
  const std::span<const float> values(mean_->as<float>(), layout_->elementsOf(row_counts_));
  return {values, std::exchange(mean_, nullptr), row_counts_};
}

}  // namespace dtf::optimizer
