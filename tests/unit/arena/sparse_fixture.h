#pragma once

// Gradients with rows, in a form for tests.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "common/arena/gradient_buffer.h"

namespace dtf::arena {

// Row -> values, for one sparse slice.
using Rows = std::map<uint32_t, std::vector<float>>;

inline void writeRows(const GradientLayout& layout, const std::vector<Rows>& rows,
                      const std::vector<uint32_t>& counts, float* values) {
  for (size_t i = 0; i < rows.size(); ++i) {
    float* id = values + layout.rowsAt(counts, i);
    float* value = id + counts[i];
    for (const auto& [row, of_row] : rows[i]) {
      std::memcpy(id++, &row, sizeof(row));
      for (const float each : of_row) *value++ = each;
    }
  }
}

inline std::vector<uint32_t> countsOf(const std::vector<Rows>& rows) {
  std::vector<uint32_t> counts;
  for (const Rows& of_slice : rows) counts.push_back(static_cast<uint32_t>(of_slice.size()));
  return counts;
}

inline Gradient makeGradient(const GradientLayout& layout, const std::vector<float>& dense,
                             const std::vector<Rows>& rows) {
  GradientBuffer buffer(layout);
  buffer.setRows(countsOf(rows));
  std::copy(dense.begin(), dense.end(), buffer.values());
  writeRows(layout, rows, countsOf(rows), buffer.values());
  return buffer.share();
}

}  // namespace dtf::arena
