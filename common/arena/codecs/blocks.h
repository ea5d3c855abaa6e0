#pragma once

// The frame of codecs with error feedback (Seide et al., "1-Bit Stochastic Gradient Descent", 2014;
// Karimireddy et al., "Error Feedback Fixes SignSGD", 2019). It cuts each slice into blocks,
// counted from the slice's first element. A codec encodes one block at a time, and all of them have
// a size that follows from their number of elements. Exact ranges are sent as float32. Elements in
// no range are padding, aren't sent, and are read as 0.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/arena/codec.h"

namespace dtf::arena {

// Immutable, thread-safe.
class BlockCodec : public ChangeCodec {
 public:
  uint64_t elements(std::span<const uint32_t> row_counts = {}) const override;
  uint64_t bytes(std::span<const uint32_t> row_counts = {}) const override;
  uint64_t stateElements() const override { return elements_; }
  // A part that ends inside a block leaves the whole block to the next part.
  uint64_t encode(const CodecInput& from, ElementRange part, std::byte* to) const override;
  void decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
              float* to) const override;
  // Runs are the rows of sparse variables, which are sent as float32: a row that comes once in a
  // thousand steps would wait as long for its residual.
  uint64_t runBytes(uint64_t n) const override { return n * sizeof(float); }
  uint64_t encodeRun(const float* values, uint64_t n, std::byte* to) const override;
  uint64_t decodeRun(const std::byte* from, uint64_t n, float* to) const override;
  void encodeChange(const float* values, const float* base, std::byte* to,
                    float* next) const override;
  void applyChange(std::span<const std::byte> from, const float* base, float* next) const override;

 protected:
  using BlockBytes = std::function<uint64_t(uint64_t elements)>;

  // `block`: elements, up to kCodecBlock. `block_bytes`: the size of a block of at most so many; a
  // multiple of 4.
  BlockCodec(uint64_t block, BlockBytes block_bytes, uint64_t elements, const ShardRanges& ranges);

  // Writes the sums of `values` and `residual`, and leaves in `residual` the part of each sum that
  // isn't in the block. At least one of the sums that are no numbers arrives as none.
  virtual void encodeBlock(const float* values, uint64_t n, float* residual,
                           std::byte* to) const = 0;
  // Reads a block. Any bytes are a valid one.
  virtual void decodeBlock(const std::byte* from, uint64_t n, float* to) const = 0;

 private:
  struct Run {
    ElementRange elements;
    uint64_t at = 0;  // bytes
    bool is_exact = false;
  };
  // A block of a run.
  struct Block {
    uint64_t begin = 0, count = 0;  // elements of the arena
    uint64_t at = 0;                // bytes
  };

  Block blockOf(const Run& run, uint64_t index) const;
  uint64_t blocksOf(const Run& run) const;
  uint64_t runEnd(const Run& run) const;
  uint64_t finalBytes(uint64_t elements) const;
  // Writes zeros to the elements of `to` that are in no run.
  void clearPadding(float* to) const;

  const uint64_t block_;
  const BlockBytes block_bytes_;
  const uint64_t full_bytes_;  // of a whole block
  const uint64_t elements_;
  std::vector<Run> runs_;
  uint64_t bytes_ = 0;
};

}  // namespace dtf::arena
