#include "common/ps/narrow_gradient.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/ps/bfloat16.h"

namespace dtf::ps {

namespace {

constexpr uint64_t kRunAlignment = sizeof(uint32_t);
constexpr uint64_t kWordBytes = 8;

constexpr uint64_t roundedUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// Zeros from `at` to the next multiple; returns that.
uint64_t padded(std::byte* narrow, uint64_t at, uint64_t multiple) {
  const uint64_t end = roundedUp(at, multiple);
  if (end > at) std::memset(narrow + at, 0, end - at);
  return end;
}

uint64_t narrowRun(const float* values, uint64_t n, std::byte* narrow, uint64_t at) {
  toBFloat16(values, n, reinterpret_cast<uint16_t*>(narrow + at));
  return padded(narrow, at + n * sizeof(uint16_t), kRunAlignment);
}

uint64_t widenRun(const std::byte* narrow, uint64_t at, uint64_t n, float* to) {
  fromBFloat16(reinterpret_cast<const uint16_t*>(narrow + at), n, to);
  return roundedUp(at + n * sizeof(uint16_t), kRunAlignment);
}

}  // namespace

uint64_t narrowBytes(uint64_t elements) {
  return roundedUp(elements * sizeof(uint16_t), kWordBytes);
}

uint64_t narrowBytes(const GradientLayout& layout, std::span<const uint32_t> row_counts) {
  DTF_CHECK(row_counts.size() == layout.sparse().size());
  uint64_t bytes = roundedUp(layout.denseElements() * sizeof(uint16_t), kRunAlignment);
  for (size_t i = 0; i < row_counts.size(); ++i) {
    const uint64_t values = row_counts[i] * layout.sparse()[i].row_elements;
    bytes += row_counts[i] * sizeof(uint32_t) + roundedUp(values * sizeof(uint16_t), kRunAlignment);
  }
  return roundedUp(bytes, kWordBytes);
}

void narrow(std::span<const float> values, std::byte* to) {
  toBFloat16(values.data(), values.size(), reinterpret_cast<uint16_t*>(to));
  padded(to, values.size() * sizeof(uint16_t), kWordBytes);
}

void narrow(const GradientLayout& layout, const Gradient& gradient, std::byte* to) {
  uint64_t at = narrowRun(gradient.values.data(), layout.denseElements(), to, 0);
  for (size_t i = 0; i < layout.sparse().size(); ++i) {
    const RowsView view = layout.rows(gradient, i);
    if (view.rows.empty()) continue;
    std::memcpy(to + at, view.rows.data(), view.rows.size_bytes());
    at = narrowRun(view.values, view.rows.size() * layout.sparse()[i].row_elements, to,
                   at + view.rows.size_bytes());
  }
  padded(to, at, kWordBytes);
}

void widen(const std::byte* from, uint64_t elements, float* to) {
  fromBFloat16(reinterpret_cast<const uint16_t*>(from), elements, to);
}

void widen(const GradientLayout& layout, std::span<const uint32_t> row_counts,
           const std::byte* from, float* to) {
  uint64_t at = widenRun(from, 0, layout.denseElements(), to);
  uint64_t end = layout.denseElements();
  for (size_t i = 0; i < layout.sparse().size(); ++i) {
    if (row_counts[i] == 0) continue;
    std::memcpy(to + end, from + at, row_counts[i] * sizeof(uint32_t));
    at += row_counts[i] * sizeof(uint32_t);
    end += row_counts[i];
    const uint64_t values = row_counts[i] * layout.sparse()[i].row_elements;
    at = widenRun(from, at, values, to + end);
    end += values;
  }
  std::fill(to + end, to + layout.elementsOf(row_counts), 0.0F);
}

void NarrowGradient::reserve(uint64_t bytes) {
  if (buffer_->bytes() < bytes) buffer_ = std::make_shared<Buffer>(bytes);
  bytes_ = bytes;
}

void NarrowGradient::write(const Gradient& gradient) {
  reserve(narrowBytes(layout_, gradient.row_counts));
  if (bytes_ > 0) narrow(layout_, gradient, buffer_->data());
}

void NarrowGradient::begin() {
  DTF_CHECK(layout_.sparse().empty());
  reserve(narrowBytes(layout_.denseElements()));
  written_ = 0;
}

uint64_t NarrowGradient::writeUpTo(const float* values, uint64_t elements) {
  DTF_CHECK(elements >= written_ && elements <= layout_.denseElements());
  auto* const to = reinterpret_cast<uint16_t*>(buffer_->data());
  toBFloat16(values + written_, elements - written_, to + written_);
  written_ = elements;
  const uint64_t final_bytes = elements * sizeof(uint16_t);
  const bool is_whole = elements == layout_.denseElements();
  return is_whole ? padded(buffer_->data(), final_bytes, kWordBytes) : final_bytes;
}

}  // namespace dtf::ps
