// Products of matrices whose elements are rounded to bfloat16, added up in float32, compiled once
// per instruction set and once for AMX. Both matrices are packed into tiles of 1 KiB, the layout of
// the processor's tile registers, and rounded on the way:
//
//   tile of A  16 rows, in each 32 elements of k
//   tile of B  16 pairs of k, in each 16 columns of a pair
//   tile of C  16 x 16 floats, in registers for the whole depth of a block
//
// A tile of C adds to each element, for every 32 of k, the sum of two chains, one of the even k and
// one of the odd, as TDPBF16PS does (Intel 64 and IA-32 Architectures Software Developer's Manual).
// The product of two bfloat16 is exact in float32, so fused and separate multiply-adds give the
// same result. Factors below 2^-126 count as 0, as in TDPBF16PS. The tiles also flush each sum
// below 2^-126, which the vector code does not. Only for terms that small the results may differ,
// by 2^-121 at most.

#include "common/runtime/bfloat16_product_isa.h"

#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

constexpr int64_t kTileLines = 16;          // rows of A, columns of B, pairs of k
constexpr int64_t kChunk = 2 * kTileLines;  // of k
constexpr int64_t kPanel = 2 * kTileLines;  // rows of A or columns of B that are computed together

// Maxima for one block: a panel of A stays in the first cache, the block of B in the second.
constexpr int64_t kTileDepthMax = 512;
constexpr int64_t kTileBlockColumns = 512;
static_assert(kTileDepthMax % kChunk == 0 && kTileBlockColumns % kPanel == 0);

struct alignas(64) TileWords {
  uint32_t words[kTileLines][kTileLines];
};

// One of the matrices: its lines are rows of A, or columns of B.
struct Lines {
  const float* data;
  const float* const* runs;  // used instead of `data` unless nullptr
  int64_t run;               // floats in each
  int64_t stride;            // floats, or runs
  bool adjacent_k;           // elements of a line are adjacent; otherwise the lines are

  // Returns nullptr if the 32 elements along k, or the 16 lines, from there on are all 0.
  DTF_INLINE const float* at(int64_t line, int64_t k) const {
    const int64_t row = adjacent_k ? line : k, column = adjacent_k ? k : line;
    if (runs == nullptr) return data + row * stride + column;
    const float* const found = runs[row * stride + column / run];
    return found == nullptr ? nullptr : found + column % run;
  }
};

// Rounds to the nearest bfloat16, ties to even, in the upper half of each lane; NaN stays NaN.
DTF_INLINE Numbers rounded(Floats v) {
  const Numbers bits = (Numbers)v;
  const Numbers magnitude = bits & 0x7fffffffu;
  Numbers out = bits + 0x7fffu + ((bits >> 16) & 1u);
  out = magnitude > 0x7f800000u ? bits | 0x00400000u : out;
  out = magnitude < 0x00800000u ? bits & 0x80000000u : out;
  return out & 0xffff0000u;
}

// Pairs (2p, 2p + 1) from the lanes of `even` and `odd`.
DTF_INLINE Numbers pairOf(Floats even, Floats odd) {
  return (rounded(even) >> 16) | rounded(odd);
}

DTF_INLINE Floats loadOrZero(const float* from, int64_t at, int64_t n) {
  return from == nullptr || n <= 0 ? Floats{} : loadSome(from + at, n);
}

// Packs `n` <= 32 elements of one line, pair by pair: one row of a tile of A.
DTF_INLINE void packAlong(const float* from, int64_t n, uint32_t* to) {
  if (from == nullptr) return void(__builtin_memset(to, 0, kChunk * 2));
#if defined(__AVX512BF16__)
  const __m512bh both =
      _mm512_cvtne2ps_pbh(loadOrZero(from, kLanes, n - kLanes), loadSome(from, n));
  __builtin_memcpy(to, &both, sizeof both);
#else
  typedef uint16_t Halves __attribute__((vector_size(kLanes * 2)));
  for (int64_t i = 0; i < kChunk; i += kLanes) {
    const Numbers bits = rounded(loadOrZero(from, i, n - i));
    const Halves halves = __builtin_convertvector(bits >> 16, Halves);
    __builtin_memcpy(reinterpret_cast<uint16_t*>(to) + i, &halves, sizeof halves);
  }
#endif
}

// Packs two adjacent k of `n` <= 16 lines: one row of a tile of B. nullptr: zeros.
DTF_INLINE void packAcross(const float* even, const float* odd, int64_t n, uint32_t* to) {
  for (int64_t i = 0; i < kTileLines; i += kLanes) {
    const Floats first = loadOrZero(even, i, n - i), second = loadOrZero(odd, i, n - i);
#if defined(__AVX512BF16__)
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i pairs =
        _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(second, first));
#else
    const Numbers pairs = pairOf(first, second);
#endif
    __builtin_memcpy(to + i, &pairs, sizeof pairs);
  }
}

// Transposes in squares of kLanes.
void turn(TileWords& tile) {
  TileWords turned;
  for (int64_t i = 0; i < kTileLines; i += kLanes)
    for (int64_t j = 0; j < kTileLines; j += kLanes) {
      Floats square[kLanes];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r)
        __builtin_memcpy(&square[r], &tile.words[i + r][j], sizeof square[r]);
      transpose(square);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r)
        __builtin_memcpy(&turned.words[j + r][i], &square[r], sizeof square[r]);
    }
  tile = turned;
}

// Packs `lines` <= 16 lines of `depth` <= 32 elements, filled up with zeros. `by_line`: a row of
// the tile is a line (A); otherwise it is a pair of k (B).
void packTile(const Lines& m, int64_t line, int64_t lines, int64_t k, int64_t depth, bool by_line,
              TileWords& tile) {
  const int64_t pairs = parts(depth, 2);
  const int64_t rows = m.adjacent_k ? lines : pairs;
  for (int64_t r = 0; r < rows; ++r) {
    if (m.adjacent_k) {
      packAlong(m.at(line + r, k), depth, tile.words[r]);
    } else {
      const float* const odd = 2 * r + 1 < depth ? m.at(line, k + 2 * r + 1) : nullptr;
      packAcross(m.at(line, k + 2 * r), odd, lines, tile.words[r]);
    }
  }
  if (rows < kTileLines)
    __builtin_memset(tile.words[rows], 0, sizeof(tile.words[0]) * (kTileLines - rows));
  if (m.adjacent_k != by_line) turn(tile);
}

// Packs `lines` <= kPanel lines, chunk by chunk, each with one or two tiles.
void packPanel(const Lines& m, int64_t line, int64_t lines, int64_t k0, int64_t depth, bool by_line,
               TileWords* to) {
  for (int64_t k = 0; k < depth; k += kChunk)
    for (int64_t l = 0; l < lines; l += kTileLines)
      packTile(m, line + l, least(kTileLines, lines - l), k0 + k, least(kChunk, depth - k), by_line,
               *to++);
}

// One, two or four squares of C, and the panels that they are computed from.
struct TileSquare {
  const TileWords* a;  // `chunks` times `a_tiles`
  const TileWords* b;
  int64_t chunks;
  int64_t a_tiles, b_tiles;  // 1 or 2
  float* c;                  // whole tiles
  int64_t c_stride;
  bool first;  // C holds no partial sum yet
};

#if defined(__AMX_BF16__)

// TileShapes 0 to 3 are C, by rows; 4 and 5 are A, 6 and 7 B. The numbers are in the instructions.
template <int A, int B>
DTF_INLINE void multiplyTiles(const TileSquare& s) {
  const auto bytes = static_cast<size_t>(s.c_stride) * sizeof(float);
  float* const below = s.c + kTileLines * s.c_stride;
  if (s.first) {
    _tile_zero(0);
    if constexpr (B == 2) _tile_zero(1);
    if constexpr (A == 2) _tile_zero(2);
    if constexpr (A == 2 && B == 2) _tile_zero(3);
  } else {
    _tile_loadd(0, s.c, bytes);
    if constexpr (B == 2) _tile_loadd(1, s.c + kTileLines, bytes);
    if constexpr (A == 2) _tile_loadd(2, below, bytes);
    if constexpr (A == 2 && B == 2) _tile_loadd(3, below + kTileLines, bytes);
  }
  const TileWords *a = s.a, *b = s.b;
  for (int64_t chunk = 0; chunk < s.chunks; ++chunk, a += A, b += B) {
    _tile_loadd(4, a, sizeof(a->words[0]));
    _tile_loadd(6, b, sizeof(b->words[0]));
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (B == 2) {
      _tile_loadd(7, b + 1, sizeof(b->words[0]));
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (A == 2) {
      _tile_loadd(5, a + 1, sizeof(a->words[0]));
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (A == 2 && B == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, s.c, bytes);
  if constexpr (B == 2) _tile_stored(1, s.c + kTileLines, bytes);
  if constexpr (A == 2) _tile_stored(2, below, bytes);
  if constexpr (A == 2 && B == 2) _tile_stored(3, below + kTileLines, bytes);
}

void multiply(const TileSquare& s) {
  if (s.a_tiles == 2) {
    s.b_tiles == 2 ? multiplyTiles<2, 2>(s) : multiplyTiles<2, 1>(s);
  } else {
    s.b_tiles == 2 ? multiplyTiles<1, 2>(s) : multiplyTiles<1, 1>(s);
  }
}

// Configures the tiles of this thread, all whole, until the end of the scope.
class TileShapes {
 public:
  TileShapes() {
    struct alignas(64) {
      uint8_t palette, start_row, reserved[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } shapes = {};
    shapes.palette = 1;
    for (int i = 0; i < 8; ++i) {
      shapes.row_bytes[i] = sizeof(TileWords::words[0]);
      shapes.rows[i] = kTileLines;
    }
    _tile_loadconfig(&shapes);
  }
  ~TileShapes() { _tile_release(); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;
};

#else

constexpr int kTogether = kLanes == 16 ? 8 : 4;  // rows of C, with two accumulators each

// Computes kTogether rows of C from `row` on, kLanes columns from `column` on.
void multiplyRows(const TileSquare& s, const TileWords* a, const TileWords* b, int64_t row,
                  int64_t column, float* c) {
  for (int64_t chunk = 0; chunk < s.chunks; ++chunk, a += s.a_tiles, b += s.b_tiles) {
    Floats even[kTogether] = {}, odd[kTogether] = {};
    for (int64_t p = 0; p < kTileLines; ++p) {
      Numbers pairs;
      __builtin_memcpy(&pairs, &b->words[p][column], sizeof pairs);
      const Floats b_even = (Floats)(pairs << 16), b_odd = (Floats)(pairs & 0xffff0000u);
#pragma GCC unroll 8
      for (int r = 0; r < kTogether; ++r) {
        const Numbers both = a->words[row + r][p] - Numbers{};
        even[r] = fma((Floats)(both << 16), b_even, even[r]);
        odd[r] = fma((Floats)(both & 0xffff0000u), b_odd, odd[r]);
      }
    }
    // Sums stay in memory between chunks: the chains need the registers.
#pragma GCC unroll 8
    for (int r = 0; r < kTogether; ++r) {
      const Floats before = s.first && chunk == 0 ? Floats{} : load(c + r * s.c_stride);
      store(c + r * s.c_stride, before + (even[r] + odd[r]));
    }
  }
}

void multiply(const TileSquare& s) {
  for (int64_t i = 0; i < s.a_tiles; ++i)
    for (int64_t j = 0; j < s.b_tiles; ++j)
      for (int64_t row = 0; row < kTileLines; row += kTogether)
        for (int64_t column = 0; column < kTileLines; column += kLanes)
          multiplyRows(s, s.a + i, s.b + j, row, column,
                       s.c + (i * kTileLines + row) * s.c_stride + j * kTileLines + column);
}

struct TileShapes {};

#endif

// Computes a square of C with partial tiles in a buffer of whole tiles.
void multiplyPart(const TileSquare& s, int64_t rows, int64_t columns) {
  alignas(64) float whole[kPanel * kPanel];
  TileSquare beside = s;
  beside.c = whole;
  beside.c_stride = kPanel;
  if (!s.first) {
    __builtin_memset(whole, 0, sizeof whole);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < columns; v += kLanes)
        store(whole + r * kPanel + v, loadSome(s.c + r * s.c_stride + v, columns - v));
  }
  multiply(beside);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < columns; v += kLanes)
      storeSome(s.c + r * s.c_stride + v, load(whole + r * kPanel + v), columns - v);
}

// Returns the tiles of a panel of `lines`, for each chunk.
DTF_INLINE int64_t tilesOf(int64_t lines) {
  return lines > kTileLines ? 2 : 1;
}

// Returns the tiles of `lines` lines of a block of this depth.
DTF_INLINE int64_t blockTiles(int64_t lines, int64_t depth) {
  return parts(lines, kTileLines) * parts(depth, kChunk);
}

struct TileBlock {
  int64_t column, columns, k, depth;
};

void runBlock(const MatrixProduct& p, const Lines& a, const Lines& b, const TileBlock& at) {
  const int64_t chunks = parts(at.depth, kChunk);
  TileWords* const b_tiles = reinterpret_cast<TileWords*>(p.workspace);
  TileWords* const a_tiles = b_tiles + blockTiles(at.columns, at.depth);
  for (int64_t j = 0; j < at.columns; j += kPanel)
    packPanel(b, at.column + j, least(kPanel, at.columns - j), at.k, at.depth, false,
              b_tiles + j / kTileLines * chunks);
  const int64_t c_stride = strideOf(p.c_stride, p.n);
  for (int64_t i = 0; i < p.m; i += kPanel) {
    const int64_t rows = least(kPanel, p.m - i);
    packPanel(a, i, rows, at.k, at.depth, true, a_tiles);
    for (int64_t j = 0; j < at.columns; j += kPanel) {
      const int64_t columns = least(kPanel, at.columns - j);
      const TileSquare square = {a_tiles,          b_tiles + j / kTileLines * chunks,
                                 chunks,           tilesOf(rows),
                                 tilesOf(columns), p.c + i * c_stride + at.column + j,
                                 c_stride,         at.k == 0 && !p.accumulate};
      const bool is_whole = rows % kTileLines == 0 && columns % kTileLines == 0;
      is_whole ? multiply(square) : multiplyPart(square, rows, columns);
    }
  }
}

}  // namespace

size_t bfloat16WorkspaceBytes(const MatrixProduct& p) {
  const int64_t depth = least(kTileDepthMax, p.k);
  return static_cast<size_t>(blockTiles(least(kTileBlockColumns, p.n), depth) +
                             blockTiles(least(kPanel, p.m), depth)) *
         sizeof(TileWords);
}

void bfloat16Product(const MatrixProduct& p) {
  [[maybe_unused]] const TileShapes tiles;
  const Lines a = {p.a, p.a_runs, p.a_run, strideOf(p.a_stride, p.transpose_a ? p.m : p.k),
                   !p.transpose_a};
  const Lines b = {p.b, p.b_runs, p.b_run, strideOf(p.b_stride, p.transpose_b ? p.k : p.n),
                   p.transpose_b};
  TileBlock at = {};
  for (at.column = 0; at.column < p.n; at.column += kTileBlockColumns) {
    at.columns = least(kTileBlockColumns, p.n - at.column);
    for (at.k = 0; at.k < p.k; at.k += kTileDepthMax) {
      at.depth = least(kTileDepthMax, p.k - at.k);
      runBlock(p, a, b, at);
    }
  }
}

}  // namespace dtf::runtime::DTF_ISA
