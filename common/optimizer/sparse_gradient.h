#pragma once

// Sums the gradients of looked-up rows to the gradient of a sparse variable, with each row once.
// TensorFlow's optimizers do so with IndexedSlices that name a row several times (unique,
// unsorted_segment_sum).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/tensor/dtype.h"

namespace dtf::optimizer {

// The rows of a table that a step read, and the gradient of each read. Borrows: both.
struct LookUp {
  DType dtype = DType::kInt32;  // of the ids
  const std::byte* ids = nullptr;
  size_t count = 0;
  const float* gradients = nullptr;  // count rows
};

// Finds the rows in `ids`, ascending, each once, of a table of `rows`. Skips ids beyond the table,
// which the step refuses. Reuses the memory of `found`, and works in the memory of `spare`.
void findRows(DType dtype, const std::byte* ids, size_t count, uint64_t rows,
              std::vector<uint32_t>& found, std::vector<uint32_t>& spare);

// Returns the place of the first id that is no row of a table of `rows`; nullopt: all are.
std::optional<size_t> firstBeyond(const LookUp& look_up, uint64_t rows);

// Returns the row that the id at `place` names; firstBeyond() has found it to be one.
uint32_t rowAt(const LookUp& look_up, size_t place);

// Owns: the rows. Their memory grows to the need of the largest batch.
// Threads: thread-compatible.
// Errors: DTF_CHECK for an id beyond the table, as the step would have refused it.
class SparseGradient {
 public:
  SparseGradient(uint64_t rows, uint64_t row_elements);

  // Sums equal ids in reading order, starting from 0: the bits of the dense gradient.
  void set(const LookUp& look_up);

  uint64_t tableRows() const { return table_rows_; }
  uint64_t rowElements() const { return row_elements_; }
  std::span<const uint32_t> rows() const { return rows_; }  // ascending, each once
  std::span<const float> values() const { return values_; }
  std::span<float> values() { return values_; }

 private:
  template <class T>
  void sort(const LookUp& look_up);

  const uint64_t table_rows_;
  const uint64_t row_elements_;
  std::vector<uint64_t> order_;  // id << 32 | place in the look-up, ascending
  std::vector<uint64_t> spare_;  // for sorting
  std::vector<uint32_t> rows_;
  std::vector<float> values_;
};

}  // namespace dtf::optimizer
