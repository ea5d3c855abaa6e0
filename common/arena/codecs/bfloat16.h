#pragma once

// bfloat16: values are sent in 16 bits (arena/bfloat16.h), except ranges that stay float32. Each
// run of one type begins at a multiple of 4 bytes, the whole ends with a whole word; the gaps are
// zero.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/arena/codec.h"

namespace dtf::arena {

// Immutable, thread-safe.
class BFloat16Codec final : public ElementCodec {
 public:
  static constexpr std::string_view kName = "bfloat16";

  // `elements`: the first ones of the arena. `exact`: of the whole arena, ascending.
  explicit BFloat16Codec(uint64_t elements, std::span<const ElementRange> exact = {});

  std::string_view name() const override { return kName; }
  uint64_t elements(std::span<const uint32_t> row_counts = {}) const override;
  uint64_t bytes(std::span<const uint32_t> row_counts = {}) const override;
  uint64_t encode(const CodecInput& from, ElementRange part, std::byte* to) const override;
  void decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
              float* to) const override;
  uint64_t runBytes(uint64_t n) const override;
  uint64_t encodeRun(const float* values, uint64_t n, std::byte* to) const override;
  uint64_t decodeRun(const std::byte* from, uint64_t n, float* to) const override;

 private:
  struct Run {
    ElementRange elements;
    uint64_t at = 0;  // bytes
    bool is_exact = false;
  };

  const uint64_t elements_;
  std::vector<Run> runs_;
  uint64_t bytes_ = 0;
};

}  // namespace dtf::arena
