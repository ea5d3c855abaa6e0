#pragma once

// float32: values are sent as they lie in memory, in whole words.

#include <cstdint>
#include <span>
#include <string_view>

#include "common/arena/codec.h"

namespace dtf::arena {

// Immutable, thread-safe.
class Float32Codec final : public ElementCodec {
 public:
  static constexpr std::string_view kName = "float32";

  explicit Float32Codec(uint64_t elements);  // even

  std::string_view name() const override { return kName; }
  bool isIdentity() const override { return true; }
  uint64_t elements(std::span<const uint32_t> row_counts = {}) const override;
  uint64_t bytes(std::span<const uint32_t> row_counts = {}) const override;
  uint64_t encode(const CodecInput& from, ElementRange part, std::byte* to) const override;
  void decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
              float* to) const override;
  uint64_t runBytes(uint64_t n) const override { return n * sizeof(float); }
  uint64_t encodeRun(const float* values, uint64_t n, std::byte* to) const override;
  uint64_t decodeRun(const std::byte* from, uint64_t n, float* to) const override;

 private:
  const uint64_t elements_;
};

}  // namespace dtf::arena
