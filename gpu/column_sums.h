#pragma once

// Sums over the rows of a matrix, for each column: neighbouring threads add up neighbouring columns, so a row is
// read in whole lines. Rows go in chunks, whose sums are added up in their order and in double precision:
// the same bits each time.

#include <cstddef>
#include <cstdint>

#include "gpu/launch.h"

namespace dtf::gpu {

// How rows are shared out. Value type.
struct ColumnChunks {
  ColumnChunks(int64_t all_rows, int64_t all_columns) : rows(all_rows), columns(all_columns) {
    constexpr int64_t kThreadsWanted = 64 * 1024, kRowsMin = 16;
    const int64_t wanted = kThreadsWanted / (columns < 1 ? 1 : columns) + 1;
    const int64_t each = (rows + wanted - 1) / wanted;
    chunk_rows = each < kRowsMin ? kRowsMin : each;
    chunks = (rows + chunk_rows - 1) / chunk_rows;
  }
  size_t bytes(int terms) const {
    return static_cast<size_t>(chunks * columns * terms) * sizeof(float);
  }
  int64_t rows, columns, chunk_rows = 1, chunks = 0;
};

// `F`: f(row, column, sums) adds the element's terms to `sums`, which has `Terms` of them.
template <int Terms, class F>
struct ChunkSumsAt {
  F f;
  ColumnChunks c;
  float* sums;  // [chunks, columns, Terms]
  DTF_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t column = i % c.columns, first = i / c.columns * c.chunk_rows;
    const int64_t last = first + c.chunk_rows < c.rows ? first + c.chunk_rows : c.rows;
    float totals[Terms] = {};
    for (int64_t row = first; row < last; ++row) f(row, column, totals);
    for (int t = 0; t < Terms; ++t) sums[i * Terms + t] = totals[t];
  }
};

// `G`: g(column, totals) takes what a column's terms add up to.
template <int Terms, class G>
struct ColumnTotalsAt {
  G g;
  ColumnChunks c;
  const float* sums;
  DTF_HOST_DEVICE void operator()(int64_t column) const {
    double totals[Terms] = {};
    for (int64_t chunk = 0; chunk < c.chunks; ++chunk)
      for (int t = 0; t < Terms; ++t)
        totals[t] += static_cast<double>(sums[(chunk * c.columns + column) * Terms + t]);
    g(column, totals);
  }
};

// `sums` has c.bytes(Terms).
template <int Terms, class F, class G>
void sumColumns(Device& device, const ColumnChunks& c, float* sums, const F& f, const G& g) {
  forElements(device, c.chunks * c.columns, ChunkSumsAt<Terms, F>{f, c, sums});
  forElements(device, c.columns, ColumnTotalsAt<Terms, G>{g, c, sums});
}

}  // namespace dtf::gpu
