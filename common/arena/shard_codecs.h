#pragma once

// The codecs of one shard, which its workers and its host make alike.

#include <cstdint>
#include <memory>
#include <span>

#include "common/arena/codec.h"
#include "common/arena/codecs/rows.h"
#include "common/arena/gradient_layout.h"

namespace dtf::arena {

// Parameters are sent whole, or as dense elements and rows; gradients have rows where the shard has
// sparse slices.
// Immutable, thread-safe.
class ShardCodecs {
 public:
  // `elements`: of the shard. `exact`: see makeCodec().
  ShardCodecs(CodecKind kind, uint64_t elements, const GradientLayout& layout,
              std::span<const ElementRange> exact);
  // For the shard of `ps_task`.
  ShardCodecs(CodecKind kind, const ParameterLayout& layout, uint32_t ps_task);

  // For all elements of the arena.
  const ElementCodec& whole() const { return *whole_; }
  // For the elements before the sparse slices.
  const ElementCodec& dense() const { return rows_ ? rows_->dense() : *whole_; }
  const Codec& gradient() const { return rows_ ? static_cast<const Codec&>(*rows_) : *whole_; }
  // For rows without the dense elements (GradientLayout::rowsAlone()); nullptr: the shard has no
  // sparse slices.
  const RowsCodec* rowsAlone() const { return rows_alone_.get(); }

 private:
  std::unique_ptr<const ElementCodec> whole_;
  std::unique_ptr<const RowsCodec> rows_, rows_alone_;
};

}  // namespace dtf::arena
