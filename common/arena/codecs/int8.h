#pragma once

// int8: blocks of 256 values, each a float32 scale and 256 signed bytes: 0.2539 of float32's size.
// The scale is a power of two, so that the rounding error of a value is exact, and the residual
// loses nothing. A block with a value that is no number, or has a magnitude of 2^127 or
// more, is sent as no numbers.

#include <cstdint>
#include <string_view>

#include "common/arena/codecs/blocks.h"

namespace dtf::arena {

// Immutable, thread-safe.
class Int8Codec final : public BlockCodec {
 public:
  static constexpr std::string_view kName = "int8";
  static constexpr uint64_t kBlock = 256;

  // `ranges`: within the first `elements`.
  explicit Int8Codec(uint64_t elements, const ShardRanges& ranges = {});

  std::string_view name() const override { return kName; }

 protected:
  void encodeBlock(const float* values, uint64_t n, float* residual, std::byte* to) const override;
  void decodeBlock(const std::byte* from, uint64_t n, float* to) const override;
};

}  // namespace dtf::arena
