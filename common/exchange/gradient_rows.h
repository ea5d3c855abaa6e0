#pragma once

// The rows of a gradient, written to the arena that is sent.

#include <algorithm>

#include "common/arena/gradient_layout.h"
#include "common/arena/row_set.h"

namespace dtf::exchange {

// Writes the ids of `rows` to `gradient`, which has room for so many rows.
inline void writeIds(const arena::GradientLayout& layout, const arena::RowSet& rows,
                     float* gradient) {
  for (size_t i = 0; i < rows.counts.size(); ++i)
    std::ranges::copy(rows.of(i),
                      reinterpret_cast<uint32_t*>(gradient + layout.rowsAt(rows.counts, i)));
}

}  // namespace dtf::exchange
