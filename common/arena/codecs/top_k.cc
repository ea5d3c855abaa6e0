#include "common/arena/codecs/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "common/arena/vector_kernel.h"
#include "common/base/check.h"

namespace dtf::arena {

namespace {

using Magnitudes = std::array<uint32_t, kCodecBlock>;

uint64_t countOf(double share, uint64_t n) {
  return std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(share * static_cast<double>(n))), 1,
                              n);
}

// Positions fill a multiple of 4 bytes.
constexpr uint64_t positionBytes(uint64_t count) {
  return (count * sizeof(uint16_t) + 3) / 4 * 4;
}

uint64_t topKBytes(double share, uint64_t n) {
  const uint64_t count = countOf(share, n);
  return positionBytes(count) + count * sizeof(float);
}

// Adds the values to `residual`, and writes the magnitudes of the sums as bits, which have the
// order of the magnitudes; no number is larger than every number.
DTF_VECTOR_KERNEL void addMeasuredKernel(const float* DTF_RESTRICT values, uint64_t n,
                                         float* DTF_RESTRICT residual,
                                         uint32_t* DTF_RESTRICT magnitudes) {
  for (uint64_t i = 0; i < n; ++i) {
    const float due = values[i] + residual[i];
    residual[i] = due;
    magnitudes[i] = std::bit_cast<uint32_t>(due) & 0x7FFFFFFFU;
  }
}

constexpr uint64_t kGroups = 128;

// Writes the largest magnitude of each group of elements with the same remainder.
DTF_VECTOR_KERNEL void largestKernel(const uint32_t* DTF_RESTRICT magnitudes,
                                     uint32_t* DTF_RESTRICT largest) {
  for (uint64_t group = 0; group < kGroups; ++group) largest[group] = magnitudes[group];
  for (uint64_t begin = kGroups; begin < kCodecBlock; begin += kGroups)
    for (uint64_t group = 0; group < kGroups; ++group)
      largest[group] = std::max(largest[group], magnitudes[begin + group]);
}

// Returns a bound that at least `count` of the magnitudes of a whole block reach, and, of few, not
// many more: the groups' largest are as many elements.
uint32_t boundOf(const Magnitudes& magnitudes, uint64_t count) {
  std::array<uint32_t, kGroups> largest;
  vectorised<largestKernel>(magnitudes.data(), largest.data());
  const auto bound = largest.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(largest.begin(), bound, largest.end(), std::greater<>());
  return *bound;
}

// Writes the positions of the `count` largest magnitudes, ascending.
void choose(const Magnitudes& magnitudes, uint64_t n, uint64_t count, uint16_t* chosen) {
  std::array<uint16_t, kCodecBlock> candidates;
  const bool is_sparse = n == kCodecBlock && count <= kGroups / 2;
  const uint32_t bound = is_sparse ? boundOf(magnitudes, count) : 0;
  uint64_t found = 0;
  for (uint64_t i = 0; i < n; ++i) {
    candidates[found] = static_cast<uint16_t>(i);
    found += magnitudes[i] >= bound ? 1 : 0;
  }
  DTF_CHECK(found >= count);
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  if (found > count)
    std::nth_element(
        candidates.begin(), end - 1, candidates.begin() + static_cast<std::ptrdiff_t>(found),
        [&magnitudes](uint16_t a, uint16_t b) {
          return magnitudes[a] != magnitudes[b] ? magnitudes[a] > magnitudes[b] : a < b;
        });
  std::sort(candidates.begin(), end);
  std::copy(candidates.begin(), end, chosen);
}

}  // namespace

TopKCodec::TopKCodec(double share, uint64_t elements, const ShardRanges& ranges)
    : BlockCodec(
          kCodecBlock, [share](uint64_t n) { return topKBytes(share, n); }, elements, ranges),
      share_(share) {
  DTF_CHECK(share > 0 && share <= 1);
}

void TopKCodec::encodeBlock(const float* values, uint64_t n, float* residual, std::byte* to) const {
  Magnitudes magnitudes;
  vectorised<addMeasuredKernel>(values, n, residual, magnitudes.data());
  const uint64_t count = countOf(share_, n);
  std::array<uint16_t, kCodecBlock> chosen;
  choose(magnitudes, n, count, chosen.data());
  if (count % 2 != 0) chosen[count] = 0;
  std::memcpy(to, chosen.data(), positionBytes(count));
  std::byte* at = to + positionBytes(count);
  for (uint64_t i = 0; i < count; ++i) {
    std::memcpy(at, &residual[chosen[i]], sizeof(float));
    residual[chosen[i]] = 0;
    at += sizeof(float);
  }
}

void TopKCodec::decodeBlock(const std::byte* from, uint64_t n, float* to) const {
  std::fill_n(to, n, 0.0F);
  const uint64_t count = countOf(share_, n);
  const std::byte* const numbers = from + positionBytes(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t position = 0;
    std::memcpy(&position, from + i * sizeof(position), sizeof(position));
    if (position < n) std::memcpy(to + position, numbers + i * sizeof(float), sizeof(float));
  }
}

}  // namespace dtf::arena
