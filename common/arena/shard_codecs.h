#pragma once

// The codecs of one shard, which its workers and its host make alike.

#include <cstdint>
#include <memory>

#include "common/arena/codec.h"
#include "common/arena/codecs/rows.h"
#include "common/arena/gradient_layout.h"

namespace dtf::arena {

// Parameters are sent whole, or as dense elements and rows; gradients have rows where the shard has
// sparse slices. A lossy codec has the dense elements of gradients; parameters are float32, and
// dense ones can be changes of earlier ones. Immutable, thread-safe.
class ShardCodecs {
 public:
  // `elements`: of the shard. `ranges`: see makeCodec().
  ShardCodecs(const CodecSpec& codec, uint64_t elements, const GradientLayout& layout,
              const ShardRanges& ranges);
  // For the shard of `ps_task`.
  ShardCodecs(const CodecSpec& codec, const ParameterLayout& layout, uint32_t ps_task);

  // For the parameters: all elements of the arena.
  const ElementCodec& whole() const { return *whole_; }
  // For the parameters before the sparse slices.
  const ElementCodec& dense() const { return dense_ ? *dense_ : *whole_; }
  // For changes of the parameters before the sparse slices; nullptr: none are sent.
  const ChangeCodec* change() const { return change_.get(); }
  // Returns the size of a gradient; of a shard with sparse slices, of one of all its rows or less.
  uint64_t encodedBytes() const { return change_ ? change_->bytes() : whole_->bytes(); }
  const Codec& gradient() const {
    if (rows_) return *rows_;
    return change_ ? static_cast<const Codec&>(*change_) : *whole_;
  }
  // For rows without the dense elements (GradientLayout::rowsAlone()); nullptr: the shard has no
  // sparse slices.
  const RowsCodec* rowsAlone() const { return rows_alone_.get(); }

 private:
  std::unique_ptr<const ElementCodec> whole_;
  std::unique_ptr<const ElementCodec> dense_;  // null: no sparse slices
  std::unique_ptr<const ChangeCodec> change_;
  std::unique_ptr<const RowsCodec> rows_, rows_alone_;
};

}  // namespace dtf::arena
