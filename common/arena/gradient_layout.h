#pragma once

// The layout of a gradient in memory, and in the message that carries it.
//
// The gradient of a dense variable is an array of its shape. A sparse variable is a table of which
// a step looks up rows; its gradient has the ids and values of these rows, like TensorFlow's
// IndexedSlices. In a shard's arena the dense variables come first, so
//
//   gradient = dense elements, then for each slice of a sparse variable
//              the ids of its rows, ascending (uint32, counted from the slice's first row), and
//              their values, one row after another; then padding to a whole word
//
// Without sparse variables a gradient has the layout of the arena.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/arena/parameter_layout.h"

namespace dtf::arena {

// A slice of a sparse variable in its shard's arena: whole rows. All counts are in elements.
struct SparseSlice {
  uint64_t offset = 0;
  uint32_t rows = 0;
  uint64_t row_elements = 0;
  uint64_t end() const { return offset + rows * row_elements; }
  bool operator==(const SparseSlice&) const = default;
};

// Returns the sparse slices of a shard, by offset; empty: each gradient is an arena.
std::vector<SparseSlice> sparseSlices(const ParameterLayout& layout, uint32_t ps_task);

// A gradient and the owner of its memory (a received message).
struct Gradient {
  std::span<const float> values;
  std::shared_ptr<const void> owner;
  std::vector<uint32_t> row_counts{};  // of each sparse slice
  uint32_t weight = 1;                 // in the mean with others, but not of rows: see row_merge.h
  // Its worker may write to it once it is answered: a later reader (a message to the keeper of the
  // replica) needs a copy.
  bool is_lent = false;
};

// The part of a gradient for one sparse slice. Borrowed.
struct RowsView {
  std::span<const uint32_t> rows;  // ascending
  const float* values = nullptr;   // of the first of them; the others follow
};

// The layout of gradients of one shard.
// Immutable, thread-safe.
class GradientLayout {
 public:
  // `elements`: of the shard's arena.
  explicit GradientLayout(uint64_t elements, std::vector<SparseSlice> sparse = {});
  GradientLayout(const ParameterLayout& layout, uint32_t ps_task);

  uint64_t denseElements() const { return dense_elements_; }
  const std::vector<SparseSlice>& sparse() const { return sparse_; }

  // Returns the elements of a gradient with so many rows of each sparse slice.
  uint64_t elementsOf(std::span<const uint32_t> row_counts) const;
  // Returns the elements of a gradient that names every row.
  uint64_t elementsMax() const;
  // Returns where the ids of sparse slice `index` begin; its values lie behind them.
  uint64_t rowsAt(std::span<const uint32_t> row_counts, size_t index) const;
  RowsView rows(const Gradient& gradient, size_t index) const;

  // Returns the layout of the same sparse slices without the dense elements; there must be some.
  GradientLayout rowsAlone() const;

  // Returns the fault of received counts: "rows of 2 sparse variables, but the shard has 1".
  // nullopt: none, and elementsOf() takes them.
  std::optional<std::string> countFault(std::span<const uint32_t> row_counts) const;
  // Returns the fault of received ids for the slice at `index`: "row 4 of a sparse variable, but
  // the shard has 4 of it". nullopt: none.
  std::optional<std::string> rowFault(std::span<const uint32_t> ids, size_t index) const;
  // Returns the fault of a gradient: in counts, size, or ids that aren't ascending rows of their
  // slice.
  std::optional<std::string> fault(const Gradient& gradient) const;

 private:
  uint64_t elements_;  // of the arena
  uint64_t dense_elements_;
  std::vector<SparseSlice> sparse_;
};

}  // namespace dtf::arena
