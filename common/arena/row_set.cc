#include "common/arena/row_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/base/check.h"

namespace dtf::arena {

std::span<const uint32_t> RowSet::of(size_t index) const {
  const auto end = counts.begin() + static_cast<std::ptrdiff_t>(index);
  const uint64_t before = std::accumulate(counts.begin(), end, uint64_t{0});
  return std::span(ids).subspan(before, counts.at(index));
}

std::optional<std::string> faultOf(const RowSet& set, const GradientLayout& layout) {
  if (const auto why = layout.countFault(set.counts)) return why;
  const uint64_t named = std::accumulate(set.counts.begin(), set.counts.end(), uint64_t{0});
  if (named != set.ids.size())
    return fmt::format("the ids of {} rows, but {} are counted", set.ids.size(), named);
  for (size_t i = 0; i < set.counts.size(); ++i)
    if (const auto why = layout.rowFault(set.of(i), i)) return why;
  return std::nullopt;
}

void gatherRows(const GradientLayout& layout, const RowSet& set, const float* arena, float* to) {
  DTF_CHECK(set.counts.size() == layout.sparse().size());
  float* end = to;
  for (size_t i = 0; i < set.counts.size(); ++i) {
    const SparseSlice& slice = layout.sparse()[i];
    const std::span<const uint32_t> ids = set.of(i);
    if (ids.empty()) continue;
    std::memcpy(end, ids.data(), ids.size_bytes());
    end += ids.size();
    for (const uint32_t id : ids) {
      DTF_CHECK(id < slice.rows);
      std::copy_n(arena + slice.offset + id * slice.row_elements, slice.row_elements, end);
      end += slice.row_elements;
    }
  }
  std::fill(end, to + (layout.elementsOf(set.counts) - layout.denseElements()), 0.0F);
}

void scatterRows(const GradientLayout& layout, const Gradient& rows, float* arena) {
  for (size_t i = 0; i < layout.sparse().size(); ++i) {
    const SparseSlice& slice = layout.sparse()[i];
    const float* const at =
        rows.values.data() + (layout.rowsAt(rows.row_counts, i) - layout.denseElements());
    const uint32_t count = rows.row_counts[i];
    const float* from = at + count;
    for (const uint32_t id : std::span(reinterpret_cast<const uint32_t*>(at), count)) {
      std::copy_n(from, slice.row_elements, arena + slice.offset + id * slice.row_elements);
      from += slice.row_elements;
    }
  }
}

}  // namespace dtf::arena
