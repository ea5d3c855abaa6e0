#pragma once

// Where a worker writes its gradient, and from where it is sent.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/ps/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::ps {

// A gradient that is being made: dense elements are written where values() says, then setRows()
// makes room for those of the sparse slices.
// Owns: the memory, shared with those to whom share() gave it.
// Threads: thread-compatible.
class GradientBuffer {
 public:
  explicit GradientBuffer(GradientLayout layout);

  // Aligned to 64 bytes. The array may move with setRows(); the dense elements keep their values.
  float* values();
  // The next gradient has so many rows of each sparse slice: the caller writes ids and values to
  // where layout().rowsAt() says. What was written of the dense elements stays. Memory grows, and
  // is kept.
  void setRows(std::span<const uint32_t> row_counts);

  // Moves the memory to where other processes can be given it to read; what was written stays. Of a
  // shard without sparse slices.
  // Errors: kUnavailable with what the kernel refuses; nothing has changed.
  void moveToSharedMemory();
  // nullptr: it was not moved there.
  const std::shared_ptr<const SharedMemory>& sharedMemory() const {
    return buffer_->sharedMemory();
  }

  const GradientLayout& layout() const { return layout_; }
  // As it is now: shares the memory.
  Gradient share() const;
  // As it is now, in memory of its own.
  Gradient copy() const;

 private:
  uint64_t elements() const { return layout_.elementsOf(row_counts_); }

  GradientLayout layout_;
  std::shared_ptr<Buffer> buffer_;
  std::vector<uint32_t> row_counts_;
};

}  // namespace dtf::ps
