#pragma once

// Parameters of which only some rows travel: those that a worker's next batch looks up. They lie in
// memory, and in the message that carries them, as a gradient's do (gradient_layout.h): dense
// elements, then ids and values of rows.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ps/gradient_layout.h"

namespace dtf::ps {

// Which rows of a shard's sparse slices. Value type.
struct RowSet {
  std::vector<uint32_t> counts;  // of each slice; empty: all of the shard is meant
  std::vector<uint32_t> ids;     // ascending, counted from the slice's first row; slice after slice

  bool isWhole() const { return counts.empty(); }
  // Of the slice at `index`.
  std::span<const uint32_t> of(size_t index) const;
  bool operator==(const RowSet&) const = default;
};

// The fault of a received set: "row 9 of a sparse variable, but the shard has 4 of it". nullopt:
// none.
std::optional<std::string> faultOf(const RowSet& set, const GradientLayout& layout);

// Their ids and values in `arena`, as a gradient of layout.rowsAlone():
// layout.rowsAlone().elementsOf(set.counts) are written to `to`. The set has no fault, and is not
// whole.
void gatherRows(const GradientLayout& layout, const RowSet& set, const float* arena, float* to);

// The other way: writes the values of `rows`, a gradient of layout.rowsAlone() without fault, to
// their places in `arena`.
void scatterRows(const GradientLayout& layout, const Gradient& rows, float* arena);

}  // namespace dtf::ps
