#include "common/arena/codecs/bfloat16.h"

#include <algorithm>
#include <cstring>

#include "common/arena/bfloat16.h"
#include "common/base/check.h"

namespace dtf::arena {

namespace {

constexpr uint64_t kRunAlignment = sizeof(uint32_t);
constexpr uint64_t kWordBytes = 8;

constexpr uint64_t roundedUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

// Writes zeros from `at` to the next multiple; returns that.
uint64_t padded(std::byte* to, uint64_t at, uint64_t multiple) {
  const uint64_t end = roundedUp(at, multiple);
  if (end > at) std::memset(to + at, 0, end - at);
  return end;
}

uint64_t runBytesOf(uint64_t n, bool is_exact) {
  return roundedUp(n * (is_exact ? sizeof(float) : sizeof(uint16_t)), kRunAlignment);
}

}  // namespace

BFloat16Codec::BFloat16Codec(uint64_t elements, std::span<const ElementRange> exact)
    : elements_(elements) {
  const auto add = [this](uint64_t begin, uint64_t end, bool is_exact) {
    if (begin == end) return;
    runs_.push_back({{begin, end}, bytes_, is_exact});
    bytes_ += runBytesOf(end - begin, is_exact);
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

uint64_t BFloat16Codec::elements(std::span<const uint32_t> row_counts) const {
  DTF_CHECK(row_counts.empty());
  return elements_;
}

uint64_t BFloat16Codec::bytes(std::span<const uint32_t> row_counts) const {
  DTF_CHECK(row_counts.empty());
  return bytes_;
}

uint64_t BFloat16Codec::encode(const CodecInput& from, ElementRange part, std::byte* to) const {
  DTF_CHECK(part.begin <= part.end && part.end <= elements_);
  uint64_t final_bytes = 0;
  for (const Run& run : runs_) {
    if (run.elements.end <= part.begin) continue;
    if (run.elements.begin >= part.end) break;
    const uint64_t begin = std::max(part.begin, run.elements.begin);
    const uint64_t end = std::min(part.end, run.elements.end);
    const uint64_t size = run.is_exact ? sizeof(float) : sizeof(uint16_t);
    std::byte* const at = to + run.at + (begin - run.elements.begin) * size;
    if (run.is_exact)
      std::memcpy(at, from.values + begin, (end - begin) * size);
    else
      toBFloat16(from.values + begin, end - begin, reinterpret_cast<uint16_t*>(at));
    final_bytes = run.at + (end - run.elements.begin) * size;
    if (end == run.elements.end) final_bytes = padded(to, final_bytes, kRunAlignment);
  }
  return part.end == elements_ ? padded(to, final_bytes, kWordBytes) : final_bytes;
}

void BFloat16Codec::decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
                           float* to) const {
  requireSize(from, bytes(row_counts));
  for (const Run& run : runs_) {
    const uint64_t n = run.elements.end - run.elements.begin;
    const std::byte* const at = from.data() + run.at;
    if (run.is_exact)
      std::memcpy(to + run.elements.begin, at, n * sizeof(float));
    else
      fromBFloat16(reinterpret_cast<const uint16_t*>(at), n, to + run.elements.begin);
  }
}

uint64_t BFloat16Codec::runBytes(uint64_t n) const {
  return runBytesOf(n, false);
}

uint64_t BFloat16Codec::encodeRun(const float* values, uint64_t n, std::byte* to) const {
  toBFloat16(values, n, reinterpret_cast<uint16_t*>(to));
  return padded(to, n * sizeof(uint16_t), kRunAlignment);
}

uint64_t BFloat16Codec::decodeRun(const std::byte* from, uint64_t n, float* to) const {
  fromBFloat16(reinterpret_cast<const uint16_t*>(from), n, to);
  return runBytes(n);
}

}  // namespace dtf::arena
