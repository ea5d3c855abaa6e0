#pragma once

// rows: dense elements in another codec, padded to a whole word, then for each slice of a sparse
// variable the ids of its rows (uint32) and their values, as a run of that codec; at the end a
// whole word. A gradient with rows has this form, and so have parameters of which only some rows
// are sent (row_set.h).

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "common/arena/codec.h"
#include "common/arena/gradient_layout.h"

namespace dtf::arena {

// Immutable, thread-safe.
class RowsCodec final : public Codec {
 public:
  static constexpr std::string_view kName = "rows";

  // `layout` has sparse slices. `dense`: for its dense elements. The rows are runs of it, without
  // its state.
  RowsCodec(GradientLayout layout, std::unique_ptr<const ElementCodec> dense);

  const GradientLayout& layout() const { return layout_; }
  const ElementCodec& dense() const { return *dense_; }

  std::string_view name() const override { return kName; }
  bool isIdentity() const override { return dense_->isIdentity(); }
  uint64_t elements(std::span<const uint32_t> row_counts) const override;
  uint64_t bytes(std::span<const uint32_t> row_counts) const override;
  uint64_t stateElements() const override { return dense_->stateElements(); }
  // The rows are encoded with the part that ends the gradient.
  uint64_t encode(const CodecInput& from, ElementRange part, std::byte* to) const override;
  void decode(std::span<const std::byte> from, std::span<const uint32_t> row_counts,
              float* to) const override;

 private:
  const GradientLayout layout_;
  const std::unique_ptr<const ElementCodec> dense_;
};

}  // namespace dtf::arena
