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

uint64_t runBytes(uint64_t elements, bool is_exact) {
  const uint64_t bytes = elements * (is_exact ? sizeof(float) : sizeof(uint16_t));
  return roundedUp(bytes, kRunAlignment);
}

}  // namespace

std::vector<ElementRange> exactRanges(const ParameterLayout& layout, uint32_t ps_task) {
  std::vector<ElementRange> exact;
  for (const Slice& slice : layout.shards.at(ps_task).slices)
    if (layout.variables.at(slice.variable).momentum)
      exact.push_back({slice.offset, slice.offset + slice.count});
  std::ranges::sort(exact, {}, &ElementRange::begin);
  return exact;
}

NarrowLayout::NarrowLayout(uint64_t elements, std::span<const ElementRange> exact)
    : elements_(elements) {
  const auto add = [this](uint64_t begin, uint64_t end, bool is_exact) {
    if (begin == end) return;
    runs_.push_back({{begin, end}, bytes_, is_exact});
    bytes_ += runBytes(end - begin, is_exact);
  };
  uint64_t end = 0;
  for (const ElementRange& range : exact) {
    if (range.begin >= elements) break;
    DTF_CHECK(range.begin >= end && range.end <= elements);
    add(end, range.begin, false);
    add(range.begin, range.end, true);
    end = range.end;
  }
  add(end, elements, false);
  bytes_ = roundedUp(bytes_, kWordBytes);
}

uint64_t NarrowLayout::narrow(const float* values, uint64_t begin, uint64_t end,
                              std::byte* to) const {
  DTF_CHECK(begin <= end && end <= elements_);
  uint64_t final_bytes = 0;
  for (const Run& run : runs_) {
    if (run.elements.end <= begin) continue;
    if (run.elements.begin >= end) break;
    const uint64_t from = std::max(begin, run.elements.begin);
    const uint64_t until = std::min(end, run.elements.end);
    const uint64_t size = run.is_exact ? sizeof(float) : sizeof(uint16_t);
    const uint64_t at = run.at + (from - run.elements.begin) * size;
    if (run.is_exact)
      std::memcpy(to + at, values + from, (until - from) * size);
    else
      toBFloat16(values + from, until - from, reinterpret_cast<uint16_t*>(to + at));
    final_bytes = run.at + (until - run.elements.begin) * size;
    if (until == run.elements.end) final_bytes = padded(to, final_bytes, kRunAlignment);
  }
  return end == elements_ ? padded(to, final_bytes, kWordBytes) : final_bytes;
}

void NarrowLayout::widen(const std::byte* from, float* to) const {
  for (const Run& run : runs_) {
    const uint64_t n = run.elements.end - run.elements.begin;
    if (run.is_exact)
      std::memcpy(to + run.elements.begin, from + run.at, n * sizeof(float));
    else
      fromBFloat16(reinterpret_cast<const uint16_t*>(from + run.at), n, to + run.elements.begin);
  }
}

uint64_t narrowRowsBytes(const GradientLayout& alone, std::span<const uint32_t> row_counts) {
  DTF_CHECK(row_counts.size() == alone.sparse().size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < row_counts.size(); ++i)
    bytes += row_counts[i] * sizeof(uint32_t) +
             runBytes(row_counts[i] * alone.sparse()[i].row_elements, false);
  return roundedUp(bytes, kWordBytes);
}

void narrowRows(const GradientLayout& alone, const Gradient& rows, std::byte* to) {
  uint64_t at = 0;
  for (size_t i = 0; i < alone.sparse().size(); ++i) {
    const RowsView view = alone.rows(rows, i);
    if (view.rows.empty()) continue;
    std::memcpy(to + at, view.rows.data(), view.rows.size_bytes());
    at = narrowRun(view.values, view.rows.size() * alone.sparse()[i].row_elements, to,
                   at + view.rows.size_bytes());
  }
  padded(to, at, kWordBytes);
}

void widenRows(const GradientLayout& alone, std::span<const uint32_t> row_counts,
               const std::byte* from, float* to) {
  uint64_t at = 0, end = 0;
  for (size_t i = 0; i < alone.sparse().size(); ++i) {
    if (row_counts[i] == 0) continue;
    std::memcpy(to + end, from + at, row_counts[i] * sizeof(uint32_t));
    at += row_counts[i] * sizeof(uint32_t);
    end += row_counts[i];
    const uint64_t values = row_counts[i] * alone.sparse()[i].row_elements;
    at = widenRun(from, at, values, to + end);
    end += values;
  }
  std::fill(to + end, to + alone.elementsOf(row_counts), 0.0F);
}

void NarrowGradient::reserve(uint64_t bytes) {
  if (buffer_->bytes() < bytes) buffer_ = std::make_shared<Buffer>(bytes);
  bytes_ = bytes;
}

void NarrowGradient::write(const Gradient& gradient) {
  reserve(narrowGradientBytes(layout_, dense_, gradient.row_counts));
  if (bytes_ == 0) return;
  dense_.narrow(gradient.values.data(), 0, dense_.elements(), buffer_->data());
  if (layout_.sparse().empty()) return;
  const Gradient rows{gradient.values.subspan(dense_.elements()), nullptr, gradient.row_counts};
  narrowRows(layout_.rowsAlone(), rows, buffer_->data() + dense_.bytes());
}

void NarrowGradient::begin() {
  DTF_CHECK(layout_.sparse().empty());
  reserve(dense_.bytes());
  written_ = final_bytes_ = 0;
}

// What is final may be on its way: it isn't written again.
uint64_t NarrowGradient::writeUpTo(const float* values, uint64_t elements) {
  DTF_CHECK(elements >= written_);
  if (elements == written_) return final_bytes_;
  final_bytes_ = dense_.narrow(values, written_, elements, buffer_->data());
  written_ = elements;
  return final_bytes_;
}

uint64_t narrowGradientBytes(const GradientLayout& layout, const NarrowLayout& dense,
                             std::span<const uint32_t> row_counts) {
  if (layout.sparse().empty()) return dense.bytes();
  return dense.bytes() + narrowRowsBytes(layout.rowsAlone(), row_counts);
}

void widenGradient(const GradientLayout& layout, const NarrowLayout& dense,
                   std::span<const uint32_t> row_counts, const std::byte* from, float* to) {
  if (layout.elementsOf(row_counts) == 0) return;
  dense.widen(from, to);
  if (layout.sparse().empty()) return;
  widenRows(layout.rowsAlone(), row_counts, from + dense.bytes(), to + dense.elements());
}

}  // namespace dtf::ps
