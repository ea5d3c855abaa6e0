#pragma once

// The mean of gradients with sparse slices, as one gradient: what a replica is sent. An update with
// it has the bits of an update with all of them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/ps/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::ps {

// Owns: the mean.
// Borrows: the values of the gradients.
// Threads: run() is thread-safe for disjoint ranges.
// Blocks: computes.
class SparseMean {
 public:
  // Finds the rows that any gradient names, and makes room for them.
  SparseMean(const GradientLayout& layout, std::span<const Gradient> gradients);

  // Elements [begin, end) of the shard's arena.
  void run(uint64_t begin, uint64_t end);
  // When all have run.
  Gradient take();

 private:
  void runRows(size_t index, uint64_t begin, uint64_t end);

  const GradientLayout layout_;
  std::vector<const float*> dense_;
  std::vector<std::vector<RowsView>> rows_;  // by sparse slice, then by gradient
  std::vector<uint32_t> row_counts_;
  std::shared_ptr<Buffer> mean_;
};

}  // namespace dtf::ps
