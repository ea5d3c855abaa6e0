#include "common/arena/gradient_layout.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"

namespace dtf::arena {

namespace {

constexpr uint64_t kWord = 2;  // elements: messages carry whole words

uint64_t toWords(uint64_t elements) {
  return (elements + kWord - 1) / kWord * kWord;
}

}  // namespace

std::vector<SparseSlice> sparseSlices(const ParameterLayout& layout, uint32_t ps_task) {
  std::vector<SparseSlice> sparse;
  for (const Slice& slice : layout.shards.at(ps_task).slices) {
    const VariableInfo& variable = layout.variables.at(slice.variable);
    if (!variable.is_sparse) continue;
    const uint64_t row = rowElements(variable.shape);
    DTF_CHECK(slice.count % row == 0 && slice.count / row <= UINT32_MAX);
    sparse.push_back({slice.offset, static_cast<uint32_t>(slice.count / row), row});
  }
  return sparse;
}

GradientLayout::GradientLayout(uint64_t elements, std::vector<SparseSlice> sparse)
    : elements_(elements),
      dense_elements_(sparse.empty() ? elements : sparse.front().offset),
      sparse_(std::move(sparse)) {
  DTF_CHECK(sparse_.empty() || sparse_.back().end() <= elements);
}

GradientLayout::GradientLayout(const ParameterLayout& layout, uint32_t ps_task)
    : GradientLayout(layout.shards.at(ps_task).elements, sparseSlices(layout, ps_task)) {}

uint64_t GradientLayout::rowsAt(std::span<const uint32_t> row_counts, size_t index) const {
  DTF_CHECK(row_counts.size() == sparse_.size() && index <= sparse_.size());
  uint64_t at = dense_elements_;
  for (size_t i = 0; i < index; ++i) at += row_counts[i] * (1 + sparse_[i].row_elements);
  return at;
}

uint64_t GradientLayout::elementsOf(std::span<const uint32_t> row_counts) const {
  return toWords(rowsAt(row_counts, sparse_.size()));
}

uint64_t GradientLayout::elementsMax() const {
  std::vector<uint32_t> all;
  for (const SparseSlice& slice : sparse_) all.push_back(slice.rows);
  return elementsOf(all);
}

RowsView GradientLayout::rows(const Gradient& gradient, size_t index) const {
  const float* const ids = gradient.values.data() + rowsAt(gradient.row_counts, index);
  const uint32_t count = gradient.row_counts[index];
  return {{reinterpret_cast<const uint32_t*>(ids), count}, ids + count};
}

GradientLayout GradientLayout::rowsAlone() const {
  DTF_CHECK(!sparse_.empty());
  std::vector<SparseSlice> moved = sparse_;
  for (SparseSlice& slice : moved) slice.offset -= dense_elements_;
  return GradientLayout(elements_ - dense_elements_, std::move(moved));
}

std::optional<std::string> GradientLayout::countFault(std::span<const uint32_t> row_counts) const {
  if (row_counts.size() != sparse_.size())
    return fmt::format("rows of {} sparse variables, but the shard has {}", row_counts.size(),
                       sparse_.size());
  for (size_t i = 0; i < sparse_.size(); ++i)
    if (row_counts[i] > sparse_[i].rows)
      return fmt::format("{} rows of a sparse variable, but the shard has {} of it", row_counts[i],
                         sparse_[i].rows);
  return std::nullopt;
}

std::optional<std::string> GradientLayout::rowFault(std::span<const uint32_t> ids,
                                                    size_t index) const {
  const uint32_t rows = sparse_.at(index).rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= rows)
      return fmt::format("row {} of a sparse variable, but the shard has {} of it", ids[i], rows);
    if (i > 0 && ids[i] <= ids[i - 1])
      return fmt::format("row {} after row {}: rows must be ascending, each once", ids[i],
                         ids[i - 1]);
  }
  return std::nullopt;
}

std::optional<std::string> GradientLayout::fault(const Gradient& gradient) const {
  if (const auto why = countFault(gradient.row_counts)) return why;
  if (gradient.values.size() != elementsOf(gradient.row_counts)) {
    if (sparse_.empty())
      return fmt::format("a gradient of {} elements for a shard of {}", gradient.values.size(),
                         elements_);
    return fmt::format("a gradient of {} elements, but {} dense elements and its rows make {}",
                       gradient.values.size(), dense_elements_, elementsOf(gradient.row_counts));
  }
  for (size_t i = 0; i < sparse_.size(); ++i)
    if (const auto why = rowFault(rows(gradient, i).rows, i)) return why;
  return std::nullopt;
}

}  // namespace dtf::arena
