#pragma once

// Gradients and parameters as they travel where `replication.transfer_dtype` is bfloat16: a narrow arena is half of one.
//
//   narrow gradient = dense elements, then for each slice of a sparse variable
//                     the ids of its rows (uint32, as they are), and their values
//
// All but ids are bfloat16 (bfloat16.h). Each of these runs begins at a multiple of 4 bytes, and the end is a whole word; what is between
// is zero. Parameters: dense elements alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/ps/gradient_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::ps {

// Of parameters, or of a gradient without rows.
uint64_t narrowBytes(uint64_t elements);
// Of a gradient with so many rows of each sparse slice.
uint64_t narrowBytes(const GradientLayout& layout, std::span<const uint32_t> row_counts);

// Writes narrowBytes(values.size()) to `to`, which is aligned to 4 bytes.
void narrow(std::span<const float> values, std::byte* to);
// Writes narrowBytes(layout, gradient.row_counts) to `to`, likewise. The gradient has no fault (GradientLayout::fault()).
void narrow(const GradientLayout& layout, const Gradient& gradient, std::byte* to);

// The other way: `from` has narrowBytes(elements), or narrowBytes(layout, row_counts), and is aligned to 4 bytes.
void widen(const std::byte* from, uint64_t elements, float* to);
// Writes layout.elementsOf(row_counts). Ids are as they came.
void widen(const GradientLayout& layout, std::span<const uint32_t> row_counts,
           const std::byte* from, float* to);

// A gradient that a worker sends so.
// Owns: the memory, shared with messages that are being sent.
// Threads: thread-compatible; bytes() and owner() may be read by another thread while writeUpTo() goes on, as far as that has
// been told to be final (net/send_gate.h).
class NarrowGradient {
 public:
  explicit NarrowGradient(GradientLayout layout) : layout_(std::move(layout)) {}

  // All of it.
  void write(const Gradient& gradient);

  // Of one without sparse slices, bit by bit: begin(), then writeUpTo() with more elements each time, at last all. Returns how many of
  // bytes() are final.
  void begin();
  uint64_t writeUpTo(const float* values, uint64_t elements);

  std::span<const std::byte> bytes() const { return {buffer_->data(), bytes_}; }
  std::shared_ptr<const void> owner() const { return buffer_; }

 private:
  void reserve(uint64_t bytes);

  const GradientLayout layout_;
  std::shared_ptr<Buffer> buffer_ = std::make_shared<Buffer>();
  uint64_t bytes_ = 0;
  uint64_t written_ = 0;  // elements, of one that is written bit by bit
};

}  // namespace dtf::ps
