#include "common/arena/codecs/rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace dtf::arena {

namespace {

constexpr uint64_t kRowsEndBytes = 8;

uint64_t wholeWords(uint64_t bytes) {
  return (bytes + kRowsEndBytes - 1) / kRowsEndBytes * kRowsEndBytes;
}

}  // namespace

RowsCodec::RowsCodec(GradientLayout layout, std::unique_ptr<const ElementCodec> dense)
    : layout_(std::move(layout)), dense_(std::move(dense)) {
  DTF_CHECK(!layout_.sparse().empty());
  DTF_CHECK(dense_->elements() == layout_.denseElements());
}

uint64_t RowsCodec::elements(std::span<const uint32_t> row_counts) const {
  return layout_.elementsOf(row_counts);
}

uint64_t RowsCodec::bytes(std::span<const uint32_t> row_counts) const {
  DTF_CHECK(row_counts.size() == layout_.sparse().size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < row_counts.size(); ++i)
    bytes += row_counts[i] * sizeof(uint32_t) +
             dense_->runBytes(row_counts[i] * layout_.sparse()[i].row_elements);
  return dense_->bytes() + wholeWords(bytes);
}

uint64_t RowsCodec::encode(const CodecInput& from, ElementRange part, std::byte* to) const {
  const uint64_t dense = layout_.denseElements();
  const uint64_t all = elements(from.row_counts);
  DTF_CHECK(part.begin <= part.end && (part.end <= dense || part.end == all));
  uint64_t at = 0;
  if (part.begin < dense)
    at = dense_->encode({.values = from.values, .residual = from.residual},
                        {part.begin, std::min(part.end, dense)}, to);
  if (part.end < all) return at;
  at = dense_->bytes();
  const float* values = from.values + dense;
  for (size_t i = 0; i < from.row_counts.size(); ++i) {
    const uint32_t rows = from.row_counts[i];
    if (rows == 0) continue;
    std::memcpy(to + at, values, rows * sizeof(uint32_t));
    at += rows * sizeof(uint32_t);
    const uint64_t n = rows * layout_.sparse()[i].row_elements;
    at += dense_->encodeRun(values + rows, n, to + at);
    values += rows + n;
  }
  const uint64_t end = wholeWords(at);
  if (end > at) std::memset(to + at, 0, end - at);
  return end;
}

void RowsCodec::decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
                       float* to) const {
  requireSize(from, bytes(row_counts));
  dense_->decode(from.first(dense_->bytes()), {}, to);
  const std::byte* at = from.data() + dense_->bytes();
  float* values = to + layout_.denseElements();
  for (size_t i = 0; i < row_counts.size(); ++i) {
    const uint32_t rows = row_counts[i];
    if (rows == 0) continue;
    std::memcpy(values, at, rows * sizeof(uint32_t));
    at += rows * sizeof(uint32_t);
    values += rows;
    const uint64_t n = rows * layout_.sparse()[i].row_elements;
    at += dense_->decodeRun(at, n, values);
    values += n;
  }
  std::fill(values, to + elements(row_counts), 0.0F);
}

}  // namespace dtf::arena
