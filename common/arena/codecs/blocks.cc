#include "common/arena/codecs/blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/arena/vector_kernel.h"
#include "common/base/check.h"

namespace dtf::arena {

namespace {

constexpr uint64_t kEncodedMultiple = 8;

uint64_t wholeMultiple(uint64_t bytes) {
  return (bytes + kEncodedMultiple - 1) / kEncodedMultiple * kEncodedMultiple;
}

// Parameters that are no numbers are no base: their change wouldn't be one either.
DTF_VECTOR_KERNEL float numberOr0(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return (bits & 0x7F800000U) == 0x7F800000U ? 0.0F : value;
}

DTF_VECTOR_KERNEL void changeKernel(const float* DTF_RESTRICT values,
                                    const float* DTF_RESTRICT base, uint64_t n,
                                    float* DTF_RESTRICT to) {
  for (uint64_t i = 0; i < n; ++i) to[i] = values[i] - numberOr0(base[i]);
}

// `next` may be `base`.
DTF_VECTOR_KERNEL void addChangeKernel(const float* base, const float* DTF_RESTRICT change,
                                       uint64_t n, float* next) {
  for (uint64_t i = 0; i < n; ++i) next[i] = numberOr0(base[i]) + change[i];
}

}  // namespace

BlockCodec::BlockCodec(uint64_t block, BlockBytes block_bytes, uint64_t elements,
                       const ShardRanges& ranges)
    : block_(block),
      block_bytes_(std::move(block_bytes)),
      full_bytes_(block_bytes_(block)),
      elements_(elements) {
  DTF_CHECK(block > 0 && kCodecBlock % block == 0);
  for (const ElementRange& range : ranges.exact) runs_.push_back({range, 0, true});
  for (const ElementRange& range : ranges.slices) runs_.push_back({range, 0, false});
  if (runs_.empty() && elements > 0) runs_.push_back({{0, elements}, 0, false});
  std::ranges::sort(runs_, {}, [](const Run& run) { return run.elements.begin; });
  uint64_t end = 0;
  for (Run& run : runs_) {
    DTF_CHECK(run.elements.begin >= end && run.elements.end <= elements);
    run.at = bytes_;
    end = run.elements.end;
    bytes_ = runEnd(run);
  }
  bytes_ = wholeMultiple(bytes_);
}

uint64_t BlockCodec::elements(std::span<const uint32_t> row_counts) const {
  DTF_CHECK(row_counts.empty());
  return elements_;
}

uint64_t BlockCodec::bytes(std::span<const uint32_t> row_counts) const {
  DTF_CHECK(row_counts.empty());
  return bytes_;
}

BlockCodec::Block BlockCodec::blockOf(const Run& run, uint64_t index) const {
  const uint64_t begin = run.elements.begin + index * block_;
  return {begin, std::min(block_, run.elements.end - begin), run.at + index * full_bytes_};
}

uint64_t BlockCodec::blocksOf(const Run& run) const {
  return (run.elements.end - run.elements.begin + block_ - 1) / block_;
}

// Returns the byte behind the run.
uint64_t BlockCodec::runEnd(const Run& run) const {
  const uint64_t n = run.elements.end - run.elements.begin;
  if (run.is_exact) return run.at + n * sizeof(float);
  const uint64_t rest = n % block_;
  return run.at + n / block_ * full_bytes_ + (rest > 0 ? block_bytes_(rest) : 0);
}

// Returns how many bytes are final when the first `elements` have been encoded.
uint64_t BlockCodec::finalBytes(uint64_t elements) const {
  if (elements == elements_) return bytes_;
  uint64_t final_bytes = 0;
  for (const Run& run : runs_) {
    if (run.elements.begin >= elements) break;
    const uint64_t written = std::min(elements, run.elements.end) - run.elements.begin;
    if (elements >= run.elements.end)
      final_bytes = runEnd(run);
    else
      final_bytes =
          run.at + (run.is_exact ? written * sizeof(float) : written / block_ * full_bytes_);
  }
  return final_bytes;
}

uint64_t BlockCodec::encode(const CodecInput& from, ElementRange part, std::byte* to) const {
  DTF_CHECK(part.begin <= part.end && part.end <= elements_);
  for (const Run& run : runs_) {
    if (run.elements.end <= part.begin) continue;
    if (run.elements.begin >= part.end) break;
    const uint64_t begin = std::max(part.begin, run.elements.begin) - run.elements.begin;
    const uint64_t end = std::min(part.end, run.elements.end) - run.elements.begin;
    if (run.is_exact) {
      encodeRun(from.values + run.elements.begin + begin, end - begin,
                to + run.at + begin * sizeof(float));
      continue;
    }
    const bool ends_run = part.end >= run.elements.end;
    const uint64_t blocks = ends_run ? blocksOf(run) : end / block_;
    for (uint64_t i = begin / block_; i < blocks; ++i) {
      const Block block = blockOf(run, i);
      encodeBlock(from.values + block.begin, block.count, from.residual + block.begin,
                  to + block.at);
    }
  }
  if (part.end == elements_ && !runs_.empty()) {
    const uint64_t end = runEnd(runs_.back());
    std::memset(to + end, 0, bytes_ - end);
  }
  return finalBytes(part.end);
}

void BlockCodec::clearPadding(float* to) const {
  uint64_t end = 0;
  for (const Run& run : runs_) {
    std::fill(to + end, to + run.elements.begin, 0.0F);
    end = run.elements.end;
  }
  std::fill(to + end, to + elements_, 0.0F);
}

void BlockCodec::decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
                        float* to) const {
  requireSize(from, bytes(row_counts));
  clearPadding(to);
  for (const Run& run : runs_) {
    if (run.is_exact) {
      decodeRun(from.data() + run.at, run.elements.end - run.elements.begin,
                to + run.elements.begin);
      continue;
    }
    for (uint64_t i = 0; i < blocksOf(run); ++i) {
      const Block block = blockOf(run, i);
      decodeBlock(from.data() + block.at, block.count, to + block.begin);
    }
  }
}

uint64_t BlockCodec::encodeRun(const float* values, uint64_t n, std::byte* to) const {
  if (n > 0) std::memcpy(to, values, n * sizeof(float));
  return n * sizeof(float);
}

uint64_t BlockCodec::decodeRun(const std::byte* from, uint64_t n, float* to) const {
  if (n > 0) std::memcpy(to, from, n * sizeof(float));
  return n * sizeof(float);
}

// ---- changes

void BlockCodec::encodeChange(const float* values, const float* base, std::byte* to,
                              float* next) const {
  std::array<float, kCodecBlock> change, lost;
  clearPadding(next);
  for (const Run& run : runs_) {
    if (run.is_exact) {
      const uint64_t n = run.elements.end - run.elements.begin;
      encodeRun(values + run.elements.begin, n, to + run.at);
      decodeRun(to + run.at, n, next + run.elements.begin);
      continue;
    }
    for (uint64_t i = 0; i < blocksOf(run); ++i) {
      const auto [begin, count, at] = blockOf(run, i);
      vectorised<changeKernel>(values + begin, base + begin, count, change.data());
      std::fill_n(lost.begin(), count, 0.0F);
      encodeBlock(change.data(), count, lost.data(), to + at);
      decodeBlock(to + at, count, change.data());
      vectorised<addChangeKernel>(base + begin, static_cast<const float*>(change.data()), count,
                                  next + begin);
    }
  }
  if (runs_.empty()) return;
  const uint64_t end = runEnd(runs_.back());
  std::memset(to + end, 0, bytes_ - end);
}

void BlockCodec::applyChange(std::span<const std::byte> from, const float* base,
                             float* next) const {
  requireSize(from, bytes_);
  std::array<float, kCodecBlock> change;
  clearPadding(next);
  for (const Run& run : runs_) {
    if (run.is_exact) {
      decodeRun(from.data() + run.at, run.elements.end - run.elements.begin,
                next + run.elements.begin);
      continue;
    }
    for (uint64_t i = 0; i < blocksOf(run); ++i) {
      const auto [begin, count, at] = blockOf(run, i);
      decodeBlock(from.data() + at, count, change.data());
      vectorised<addChangeKernel>(base + begin, static_cast<const float*>(change.data()), count,
                                  next + begin);
    }
  }
}

}  // namespace dtf::arena
