// The kernel behind matrix_product.h, compiled once per instruction set, after K. Goto and R. van
// de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a block of B and a block of
// A are packed into panels that the innermost loop reads from end to end; that loop keeps a tile of
// C in registers and adds one k to all of it at a time.
//
//   panel of B  kColumns wide: stays in the first cache while all panels of the block of A pass it
//   panel of A  at most kRows high: from the second cache
//   tile of C   kRows x kColumns: in registers for the whole depth of a block
//
// Packing costs a pass over the operand, so an operand that only few tiles read is read in place.
// //
// The blocks of k come in order, and a tile continues the sums of the previous block in C:
// splitting k changes no bits.

#include "common/runtime/matrix_product_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

constexpr int kRows = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 4;  // kRows * kVectors accumulators
constexpr int kVectors = 2;
constexpr int kColumns = kVectors * kLanes;
static_assert(kRows <= kLanes, "packRows() turns squares of kLanes");

// Maxima for one block.
constexpr int64_t kDepthMax = 256;
// larger than kDepthMax, for a k up to here: each tile is stored once
constexpr int64_t kWholeDepthMax = 384;
constexpr int64_t kBlockRows = 192;
constexpr int64_t kBlockColumns = 2048;
static_assert(kBlockRows % kRows == 0 && kBlockColumns % kColumns == 0);

// Measured on Zen 5 with 16 and with 8 lanes.
// Up to here A is read in place: always, or if k is long and the rows of A, whose stride is no
// multiple of kConflictingStride, don't evict each other from the first cache.
constexpr int64_t kUnpackedColumnPanels = 320 / kColumns;
constexpr int64_t kFewColumnPanels = kLanes == 16 ? 4 : 2;
constexpr int64_t kLongDepth = 100, kConflictingStride = 256;
constexpr int64_t kUnpackedRowPanels = 17;  // the same limit for B, unless it is transposed
constexpr int kPackedTogether = 4;          // panels of B: whole cache lines of a long row

// Returns the largest depth of a block for this k.
constexpr int64_t deepest(int64_t k) {
  return k <= kWholeDepthMax ? k : kDepthMax;
}

// A dense matrix that is read as [rows, columns], and stored so or transposed.
struct Source {
  const float* data;
  int64_t stride;  // distance of two stored rows
  bool turned;

  DTF_INLINE const float* at(int64_t row, int64_t column) const {
    return turned ? data + column * stride + row : data + row * stride + column;
  }
};

// One product, and the parts of its workspace.
struct Work {
  explicit Work(const MatrixProduct& p)
      : a{p.a, strideOf(p.a_stride, p.transpose_a ? p.m : p.k), p.transpose_a},
        b{p.b, strideOf(p.b_stride, p.transpose_b ? p.k : p.n), p.transpose_b},
        c(p.c),
        c_stride(strideOf(p.c_stride, p.n)),
        accumulate(p.accumulate),
        packs_a(parts(p.n, kColumns) > (p.k >= kLongDepth && a.stride % kConflictingStride != 0
                                            ? kUnpackedColumnPanels
                                            : kFewColumnPanels)),
        packs_b(p.transpose_b || parts(p.m, kRows) > kUnpackedRowPanels),
        column_panels(p.workspace),
        row_panels(p.workspace + columnPanelFloats(p)) {}

  // The panels of B come first in the workspace.
  static int64_t columnPanelFloats(const MatrixProduct& p) {
    return least(kWholeDepthMax, p.k) * least(kBlockColumns, parts(p.n, kLanes) * kLanes);
  }
  // A panel that doesn't fill its vectors is packed even if B is read in place.
  DTF_INLINE bool packsPanel(int64_t columns) const { return packs_b || columns % kLanes != 0; }

  Source a, b;
  float* c;
  int64_t c_stride;
  bool accumulate;
  bool packs_a, packs_b;
  float* column_panels;
  float* row_panels;
};

// The block of C at (row, column), for the k of [k0, k0 + depth).
struct Block {
  int64_t row, rows, column, columns, k0, depth;
};

// Divides the rows of a block evenly into panels, so that none is too small to be fast.
struct RowPanels {
  int64_t rows, panels;

  explicit RowPanels(int64_t rows_in) : rows(rows_in), panels(parts(rows_in, kRows)) {}
  DTF_INLINE int64_t begin(int64_t panel) const { return rows * panel / panels; }
  DTF_INLINE int64_t height(int64_t panel) const { return begin(panel + 1) - begin(panel); }
};

// Transposes `lines` <= kLanes lines of `length` floats, `stride` apart: out[i * out_stride +
// line]. Writes kLanes floats for each i, in order: with a narrow `out_stride` the next i
// overwrites the excess, and the last excess stays behind the result.
void packTurned(const float* from, int64_t stride, int64_t lines, int64_t length, float* out,
                int64_t out_stride) {
  for (int64_t i = 0; i < length; i += kLanes) {
    const int64_t n = least(kLanes, length - i);
    Floats square[kLanes];
#pragma GCC unroll 16
    for (int line = 0; line < kLanes; ++line) {
      square[line] = line < lines ? loadSome(from + line * stride + i, n) : Floats{};
    }
    transpose(square);
#pragma GCC unroll 16
    for (int j = 0; j < kLanes; ++j) {
      if (j < n) store(out + (i + j) * out_stride, square[j]);
    }
  }
}

// Like packTurned(), without transposing: out[i * out_stride + lane], `lanes` <= kLanes.
void packStraight(const float* from, int64_t stride, int64_t lanes, int64_t length, float* out,
                  int64_t out_stride) {
  for (int64_t i = 0; i < length; ++i) {
    store(out + i * out_stride, loadSome(from + i * stride, lanes));
  }
}

void packRowPanels(const Work& work, const Block& at) {
  const RowPanels panels(at.rows);
  for (int64_t panel = 0; panel < panels.panels; ++panel) {
    const int64_t row = panels.begin(panel), rows = panels.height(panel);
    const float* const from = work.a.at(at.row + row, at.k0);
    float* const to = work.row_panels + row * at.depth;
    (work.a.turned ? packStraight : packTurned)(from, work.a.stride, rows, at.depth, to, rows);
  }
}

// Packs one panel of B, `columns` <= kColumns wide, filled up with zeros to whole vectors.
void packColumnPanel(const Work& work, const Block& at, int64_t column, int64_t columns) {
  const int64_t width = parts(columns, kLanes) * kLanes;
  for (int64_t v = 0; v < width; v += kLanes) {
    (work.b.turned ? packTurned : packStraight)(work.b.at(at.k0, at.column + column + v),
                                                work.b.stride, least(kLanes, columns - v), at.depth,
                                                work.column_panels + column * at.depth + v, width);
  }
}

// Packs kPackedTogether whole panels of a B that isn't transposed.
void packColumnPanels(const Work& work, const Block& at, int64_t column) {
  const float* from = work.b.at(at.k0, at.column + column);
  float* to = work.column_panels + column * at.depth;
  for (int64_t k = 0; k < at.depth; ++k, from += work.b.stride, to += kColumns) {
#pragma GCC unroll 4
    for (int panel = 0; panel < kPackedTogether; ++panel) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        store(to + panel * kColumns * at.depth + v * kLanes,
              load(from + panel * kColumns + v * kLanes));
      }
    }
  }
}

void packColumns(const Work& work, const Block& at) {
  constexpr int64_t kTogether = kPackedTogether * kColumns;
  int64_t column = 0;
  if (work.packs_b && !work.b.turned) {
    for (; column + kTogether <= at.columns; column += kTogether) {
      packColumnPanels(work, at, column);
    }
  }
  for (; column < at.columns; column += kColumns) {
    const int64_t columns = least(kColumns, at.columns - column);
    if (work.packsPanel(columns)) packColumnPanel(work, at, column, columns);
  }
}

// A tile of C and its operands.
struct Tile {
  const float* a;  // element (row, k) is a[row * a_row + k * a_k]; one of the strides is 1
  int64_t a_row, a_k;
  const float* b;  // whole vectors for each k
  int64_t b_k;     // distance of two k
  int64_t depth;
  float* c;
  int64_t c_stride;
  int64_t columns;  // in ((V - 1) * kLanes, V * kLanes]
  bool first;       // C holds no partial sum yet
};

template <int R, int V, class F>
DTF_INLINE void forTile(const Tile& t, const F& f) {
  const int64_t last = t.columns - (V - 1) * kLanes;
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      f(r, v, t.c + r * t.c_stride + v * kLanes, v == V - 1 ? last : kLanes);
    }
  }
}

// `AdjacentRows`: a_row is 1, otherwise a_k is.
template <int R, int V, bool AdjacentRows>
void runTile(const Tile& t) {
  Floats sums[R][V] = {};
  if (t.first) {
    forTile<R, V>(t, [](int, int, float* c, int64_t) { __builtin_prefetch(c, 1); });
  } else {
    forTile<R, V>(t, [&](int r, int v, float* c, int64_t n) { sums[r][v] = loadSome(c, n); });
  }
  const int64_t a_row = AdjacentRows ? 1 : t.a_row, a_k = AdjacentRows ? t.a_k : 1, b_k = t.b_k;
  const float *a = t.a, *b = t.b;
  for (int64_t k = t.depth; k > 0; --k, a += a_k, b += b_k) {
    Floats columns[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) columns[v] = load(b + v * kLanes);
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const Floats row = splat(a[r * a_row]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sums[r][v] = fma(row, columns[v], sums[r][v]);
    }
  }
  forTile<R, V>(t, [&](int r, int v, float* c, int64_t n) { storeSome(c, sums[r][v], n); });
}

template <int R = kRows>
DTF_INLINE void dispatchTile(int64_t rows, const Tile& tile) {
  if (rows == R) {
    const bool adjacent = tile.a_row == 1;
    if (tile.columns > kLanes) return (adjacent ? runTile<R, 2, true> : runTile<R, 2, false>)(tile);
    (adjacent ? runTile<R, 1, true> : runTile<R, 1, false>)(tile);
  } else if constexpr (R > 1) {
    dispatchTile<R - 1>(rows, tile);
  }
}

// Multiplies one panel of B, packed or in place, with every panel of A.
void runColumnPanel(const Work& work, const Block& at, int64_t column) {
  const int64_t columns = least(kColumns, at.columns - column);
  const bool packed = work.packsPanel(columns);
  Tile tile = {};
  tile.b = packed ? work.column_panels + column * at.depth : work.b.at(at.k0, at.column + column);
  tile.b_k = packed ? parts(columns, kLanes) * kLanes : work.b.stride;
  tile.depth = at.depth;
  tile.c_stride = work.c_stride;
  tile.columns = columns;
  tile.first = at.k0 == 0 && !work.accumulate;
  const RowPanels panels(at.rows);
  for (int64_t panel = 0; panel < panels.panels; ++panel) {
    const int64_t row = panels.begin(panel), rows = panels.height(panel);
    tile.a = work.packs_a ? work.row_panels + row * at.depth : work.a.at(at.row + row, at.k0);
    tile.a_row = work.packs_a || work.a.turned ? 1 : work.a.stride;
    tile.a_k = work.packs_a ? rows : work.a.turned ? work.a.stride : 1;
    tile.c = work.c + (at.row + row) * work.c_stride + at.column + column;
    dispatchTile(rows, tile);
  }
}

// Returns whether it is faster to compute C transposed, as B^T * A^T, and transpose it back: a
// quarter or more of the vectors in its short rows would be empty, and A^T is stored like a right
// factor. Each element is the same chain of multiply-adds with swapped factors: the same bits.
// Never for some columns of a wider C, such as a thread's share: the workspace is sized for the
// whole.
bool isBetterTurned(const MatrixProduct& p) {
  const bool is_dense = p.c_stride == 0 || p.c_stride == p.n;
  return is_dense && p.transpose_a && !p.accumulate && 4 * p.n <= 3 * parts(p.n, kLanes) * kLanes &&
         p.n < 2 * kLanes && p.m >= 4 * kColumns;
}

int64_t turnedFloats(const MatrixProduct& p) {
  return parts(p.m * p.n, kLanes) * kLanes;
}

// Returns the product for C^T; its memory is set later.
MatrixProduct turned(const MatrixProduct& p) {
  MatrixProduct t;
  t.m = p.n, t.k = p.k, t.n = p.m;
  t.a = p.b, t.a_stride = p.b_stride, t.transpose_a = !p.transpose_b;
  t.b = p.a, t.b_stride = p.a_stride;
  return t;
}

// Transposes C back. The excess of packTurned() behind a row falls into later rows or columns; the
// last one must have none.
void turnBack(const MatrixProduct& t, const MatrixProduct& p) {
  const int64_t fast = p.m - parts(kLanes, p.n);
  for (int64_t column = parts(p.n, kLanes) * kLanes - kLanes; column >= 0; column -= kLanes) {
    packTurned(t.c + column * t.n, t.n, least(kLanes, p.n - column), fast, p.c + column, p.n);
  }
  for (int64_t row = fast; row < p.m; ++row) {
    for (int64_t column = 0; column < p.n; ++column) {
      p.c[row * p.n + column] = t.c[column * t.n + row];
    }
  }
}

// Enough for a smaller m, k or n, too: code that walks over a matrix in blocks allocates for the
// largest one.
int64_t workspaceFloats(const MatrixProduct& p) {
  const int64_t row_panels = least(kWholeDepthMax, p.k) * least(kBlockRows, p.m);
  // packTurned() writes up to kLanes floats beyond the last panel.
  return Work::columnPanelFloats(p) + row_panels + kLanes;
}

void product(const MatrixProduct& p) {
  const Work work(p);
  const int64_t depths = p.k == 0 ? 1 : parts(p.k, deepest(p.k));
  Block at = {};
  for (at.column = 0; at.column < p.n; at.column += kBlockColumns) {
    at.columns = least(kBlockColumns, p.n - at.column);
    for (int64_t part = 0; part < depths; ++part) {
      at.k0 = p.k * part / depths;
      at.depth = p.k * (part + 1) / depths - at.k0;
      packColumns(work, at);
      for (at.row = 0; at.row < p.m; at.row += kBlockRows) {
        at.rows = least(kBlockRows, p.m - at.row);
        if (work.packs_a) packRowPanels(work, at);
        for (int64_t j = 0; j < at.columns; j += kColumns) runColumnPanel(work, at, j);
      }
    }
  }
}

}  // namespace

size_t matrixProductWorkspaceBytes(const MatrixProduct& p) {
  const int64_t floats = workspaceFloats(p);
  // A thread's share may be faster as it is even if the whole is faster transposed.
  const int64_t of_turned = isBetterTurned(p) ? turnedFloats(p) + workspaceFloats(turned(p)) : 0;
  return static_cast<size_t>(of_turned > floats ? of_turned : floats) * sizeof(float);
}

void matrixProduct(const MatrixProduct& p) {
  if (!isBetterTurned(p)) return product(p);
  MatrixProduct t = turned(p);
  t.c = p.workspace;
  t.workspace = p.workspace + turnedFloats(p);
  product(t);
  turnBack(t, p);
}

}  // namespace dtf::runtime::DTF_ISA
