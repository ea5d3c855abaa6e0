#pragma once

// The memory in which a worker writes its gradient, and from which it is sent.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::arena {

// A gradient that is being made: the caller writes dense elements at values(); setRows() makes room
// for the rows of the sparse slices.
// Owns: the memory, shared with the gradients that share() returned.
// Threads: thread-compatible.
class GradientBuffer {
 public:
  explicit GradientBuffer(GradientLayout layout);

  // Aligned to 64 bytes. The array may move with setRows(); the dense elements keep their values.
  float* values();
  // Makes room for so many rows of each sparse slice in the next gradient: the caller writes ids
  // and values at layout().rowsAt(). The dense elements keep their values. Memory grows, and is
  // kept.
  void setRows(std::span<const uint32_t> row_counts);

  // Moves the memory to where other processes can read it; written values stay. Only for a shard
  // without sparse slices.
  // Errors: kUnavailable with the kernel's reason; then nothing has changed.
  void moveToSharedMemory();
  // nullptr: the memory is this process's alone.
  const std::shared_ptr<const SharedMemory>& sharedMemory() const {
    return buffer_->sharedMemory();
  }

  const GradientLayout& layout() const { return layout_; }
  // Returns the gradient as it is now, in the same memory.
  Gradient share() const;
  // Returns the gradient as it is now, in memory of its own.
  Gradient copy() const;

 private:
  uint64_t elements() const { return layout_.elementsOf(row_counts_); }

  GradientLayout layout_;
  std::shared_ptr<Buffer> buffer_;
  std::vector<uint32_t> row_counts_;
};

}  // namespace dtf::arena
