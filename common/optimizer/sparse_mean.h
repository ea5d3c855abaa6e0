#pragma once

// The mean of gradients with sparse slices, as one gradient, for a replica. An update with it has
// the same bits as an update with all of them.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::optimizer {

// Owns: the mean. Its memory, and the lists of rows, are used again for the next one.
// Borrows: the values of the gradients, from begin() to take().
// Threads: run() is thread-safe for disjoint ranges, all else is thread-compatible.
// Blocks: computes.
class SparseMean {
 public:
  explicit SparseMean(std::shared_ptr<const arena::GradientLayout> layout);

  // Finds the rows that any gradient names, and makes room for them.
  void begin(std::span<const arena::Gradient> gradients);
  // Computes elements [begin, end) of the arena: of a sparse slice, its rows as far as they lie
  // there. The result doesn't depend on the split.
  void run(uint64_t begin, uint64_t end);
  // Returns the mean, when all has run. The gradient shares the memory.
  arena::Gradient take();

 private:
  void findRows(std::span<const arena::Gradient> gradients);
  void makeRoom();
  void runRows(size_t index, uint64_t begin, uint64_t end);
  // Returns the ids of the rows of slice `index` in the mean; their values lie behind them.
  uint32_t* ids(size_t index);

  const std::shared_ptr<const arena::GradientLayout> layout_;
  std::vector<const float*> dense_;                 // of each gradient
  std::vector<uint32_t> weights_;                   // likewise
  std::vector<std::vector<arena::RowsView>> rows_;  // by sparse slice, then by gradient
  std::vector<std::vector<uint32_t>> named_;        // by sparse slice
  std::vector<uint32_t> row_counts_;
  std::shared_ptr<Buffer> mean_;
  std::array<std::shared_ptr<Buffer>, 2> buffers_;  // one may be on its way to the replica
};

}  // namespace dtf::optimizer
