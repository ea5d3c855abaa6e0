#pragma once

// Gradients and parameters as they travel where `replication.transfer_dtype` is bfloat16
// (bfloat16.h):
//
//   the elements of dense variables, then, of a gradient with rows or of parameters that come as
//   rows (row_set.h), for each slice of a sparse variable the ids of its rows (uint32) and their
//   values
//
// All but ids are bfloat16, and but the statistics that batch norms measure: of those that lie far
// from zero rounding would leave little, and what their moving averages hold in the end is no sum
// in which errors cancel. They stay float32, both ways. Each run of one type begins at a multiple
// of 4 bytes, each of the two parts ends with a whole word; what is between is zero.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/ps/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::ps {

struct ElementRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const ElementRange&) const = default;
};

// The elements of a shard's arena that travel as float32 in any case: slices of variables with a
// momentum, by offset.
std::vector<ElementRange> exactRanges(const ParameterLayout& layout, uint32_t ps_task);

// Of a shard's arena, or of its first elements.
// Immutable, thread-safe.
class NarrowLayout {
 public:
  // The first `elements`; `exact`: of the whole arena, ascending.
  explicit NarrowLayout(uint64_t elements, std::span<const ElementRange> exact = {});

  uint64_t elements() const { return elements_; }
  uint64_t bytes() const { return bytes_; }

  // Writes what the elements from `begin` to below `end` are to their places in `to`, which has
  // bytes() and is aligned to 4. Returns how many of these are final once all elements before `end`
  // have been written.
  uint64_t narrow(const float* values, uint64_t begin, uint64_t end, std::byte* to) const;
  // `from` has bytes(), and is aligned to 4.
  void widen(const std::byte* from, float* to) const;

 private:
  struct Run {
    ElementRange elements;
    uint64_t at = 0;  // bytes
    bool is_exact = false;
  };

  uint64_t elements_;
  std::vector<Run> runs_;
  uint64_t bytes_ = 0;
};

// Rows: of GradientLayout::rowsAlone().
uint64_t narrowRowsBytes(const GradientLayout& alone, std::span<const uint32_t> row_counts);
// `rows` has no fault (GradientLayout::fault()).
void narrowRows(const GradientLayout& alone, const Gradient& rows, std::byte* to);
// Writes alone.elementsOf(row_counts). Ids are as they came.
void widenRows(const GradientLayout& alone, std::span<const uint32_t> row_counts,
               const std::byte* from, float* to);

// A gradient that a worker sends so.
// Owns: the memory, shared with messages that are being sent.
// Threads: thread-compatible; bytes() and owner() may be read by another thread while writeUpTo()
// goes on, as far as that has been told to be final (net/send_gate.h).
class NarrowGradient {
 public:
  // `exact`: of the shard.
  NarrowGradient(GradientLayout layout, std::span<const ElementRange> exact)
      : layout_(std::move(layout)), dense_(layout_.denseElements(), exact) {}

  // All of it.
  void write(const Gradient& gradient);

  // Of one without sparse slices, bit by bit: begin(), then writeUpTo() with never fewer elements
  // than before, at last all. Returns how many of bytes() are final.
  void begin();
  uint64_t writeUpTo(const float* values, uint64_t elements);

  std::span<const std::byte> bytes() const { return {buffer_->data(), bytes_}; }
  std::shared_ptr<const void> owner() const { return buffer_; }

 private:
  void reserve(uint64_t bytes);

  const GradientLayout layout_;
  const NarrowLayout dense_;
  std::shared_ptr<Buffer> buffer_ = std::make_shared<Buffer>();
  uint64_t bytes_ = 0;
  uint64_t written_ = 0;      // elements, of one that is written bit by bit
  uint64_t final_bytes_ = 0;  // likewise
};

// Of a gradient that came so: its bytes, and all of it, into layout.elementsOf(row_counts)
// elements.
uint64_t narrowGradientBytes(const GradientLayout& layout, const NarrowLayout& dense,
                             std::span<const uint32_t> row_counts);
void widenGradient(const GradientLayout& layout, const NarrowLayout& dense,
                   std::span<const uint32_t> row_counts, const std::byte* from, float* to);

}  // namespace dtf::ps
