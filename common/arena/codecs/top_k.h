#pragma once

// top_k: of each block of 1024 values, the share with the largest magnitudes: their positions, two
// bytes each, then their float32 values (Stich et al., "Sparsified SGD with Memory", 2018). The
// rest stays in the residual. The first ones of equal magnitudes are sent. A share of 0.01 is 11
// values of a block, and 0.0166 of float32's size.

#include <cstdint>
#include <string_view>

#include "common/arena/codecs/blocks.h"

namespace dtf::arena {

// Immutable, thread-safe.
class TopKCodec final : public BlockCodec {
 public:
  static constexpr std::string_view kName = "top_k";

  // `share`: of the elements, above 0, up to 1; at least one of each block. `ranges`: within the
  // first `elements`.
  explicit TopKCodec(double share, uint64_t elements, const ShardRanges& ranges = {});

  std::string_view name() const override { return kName; }

 protected:
  void encodeBlock(const float* values, uint64_t n, float* residual, std::byte* to) const override;
  void decodeBlock(const std::byte* from, uint64_t n, float* to) const override;

 private:
  const double share_;
};

}  // namespace dtf::arena
