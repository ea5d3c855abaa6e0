#pragma once

// The rows of one sparse slice that several gradients name, merged in ascending order like in
// TensorFlow's sparse accumulator. A row's mean is over the gradients that name it, not over all.
// The mean is unweighted: a worker has weighted the rows of a short batch.

#include <cstdint>
#include <span>
#include <vector>

#include "common/arena/gradient_layout.h"

namespace dtf::arena {

// Borrows: the memory of the views.
// Threads: thread-compatible.
class RowMerge {
 public:
  // Merges the rows from `first` on. `gradients` are in the order in which they are summed.
  RowMerge(std::span<const RowsView> gradients, uint64_t row_elements, uint64_t first = 0);

  bool done() const { return values_.empty(); }
  uint32_t row() const { return row_; }
  // Returns the row's values in each gradient that names it.
  std::span<const float* const> values() const { return values_; }
  void next();

 private:
  void find();

  std::vector<RowsView> left_;  // of each gradient, from row() on
  const uint64_t row_elements_;
  uint32_t row_ = 0;
  std::vector<const float*> values_;
};

}  // namespace dtf::arena
