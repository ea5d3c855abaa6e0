#pragma once

// Parameters of which only some rows are sent, for a worker's next batch. They lie in memory, and
// in the message that carries them, like a gradient (gradient_layout.h): dense elements, then ids
// and values of rows.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/arena/gradient_layout.h"

namespace dtf::arena {

// A set of rows of a shard's sparse slices. Value type.
struct RowSet {
  std::vector<uint32_t> counts;  // of each slice; empty: the whole shard
  std::vector<uint32_t> ids;     // ascending, counted from the slice's first row; slice after slice

  bool isWhole() const { return counts.empty(); }
  // Returns the ids of the slice at `index`.
  std::span<const uint32_t> of(size_t index) const;
  bool operator==(const RowSet&) const = default;
};

// Returns the fault of a received set: "row 9 of a sparse variable, but the shard has 4 of it".
// nullopt: none.
std::optional<std::string> faultOf(const RowSet& set, const GradientLayout& layout);

// Writes the ids and values of `set` in `arena` to `to`, as a gradient of layout.rowsAlone(), with
// layout.rowsAlone().elementsOf(set.counts) elements. The set has no fault, and is not whole.
void gatherRows(const GradientLayout& layout, const RowSet& set, const float* arena, float* to);

// Writes the values of `rows`, a gradient of layout.rowsAlone() without fault, to their places in
// `arena`.
void scatterRows(const GradientLayout& layout, const Gradient& rows, float* arena);

}  // namespace dtf::arena
