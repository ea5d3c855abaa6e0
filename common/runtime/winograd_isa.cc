// The convolutions of winograd.h, compiled once per instruction set. The transforms interpolate at
// the points 0, 1, -1, 2, -2 and infinity; both windows have tiles of 6 x 6 and so share the
// image's transform:
//
//   y = A^T [(G g G^T) * (B^T d B)] A, element by element, summed over the channels.
//
// Transformed tiles lie in 36 planes, one for each element: plane e of the image's is a matrix
// [tiles, channels], of the filter's [channels, output channels].

#include "common/runtime/winograd_isa.h"

#include "common/runtime/matrix_product_isa.h"
#include "common/runtime/vector.h"

namespace dtf::runtime::DTF_ISA {
namespace {

constexpr int kTile = static_cast<int>(kWinogradTile);
constexpr int64_t kPlanes = kWinogradPlanes;
static_assert(kWinogradChannels % kLanes == 0);

// Planes with a power of two between them would compete for the same lines of the first cache.
constexpr int64_t kPlanePadding = 16;

// fma() with a constant factor.
DTF_INLINE Floats times(float factor, Floats a, Floats plus) {
  return fma(splat(factor), a, plus);
}

// B^T d.
DTF_INLINE void transformImage(const Floats (&d)[kTile], Floats (&to)[kTile]) {
  const Floats even1 = times(-4, d[2], d[4]), odd1 = times(-4, d[1], d[3]);
  const Floats even2 = d[4] - d[2], odd2 = 2.0f * (d[3] - d[1]);
  to[0] = times(4, d[0], times(-5, d[2], d[4]));
  to[1] = even1 + odd1;
  to[2] = even1 - odd1;
  to[3] = even2 + odd2;
  to[4] = even2 - odd2;
  to[5] = times(4, d[1], times(-5, d[3], d[5]));
}

// A^T m: `Outputs` (2 or 4) of one tile.
template <int Outputs>
DTF_INLINE void transformOutput(const Floats (&m)[kTile], Floats (&to)[Outputs]) {
  const Floats even1 = m[1] + m[2], odd1 = m[1] - m[2];
  const Floats even2 = m[3] + m[4], odd2 = m[3] - m[4];
  to[0] = m[0] + (even1 + even2);
  if constexpr (Outputs == 2) {
    to[1] = times(2, odd2, odd1) + m[5];
  } else {
    to[1] = times(2, odd2, odd1);
    to[2] = times(4, even2, even1);
    to[3] = times(8, odd2, odd1) + m[5];
  }
}

// A dy, the reverse.
template <int Outputs>
DTF_INLINE void transformGradient(const Floats (&y)[Outputs], Floats (&to)[kTile]) {
  Floats even1 = y[0], odd1 = y[1], even2 = y[0], odd2 = 2.0f * y[1];
  if constexpr (Outputs == 4) {
    even1 += y[2], odd1 += y[3];
    even2 = times(4, y[2], even2), odd2 = times(8, y[3], odd2);
  }
  to[0] = y[0];
  to[1] = even1 + odd1;
  to[2] = even1 - odd1;
  to[3] = even2 + odd2;
  to[4] = even2 - odd2;
  to[5] = y[Outputs - 1];
}

// The rows of G for the points 1 and 2 are n * (1, p, p^2, ...); the rows for -1 and -2 change
// the signs of the odd terms.
constexpr float kScale0 = 1.0f / 4, kScale1 = -1.0f / 6, kScale2 = 1.0f / 24;

// G g.
template <int Window>
DTF_INLINE void transformFilter(const Floats (&g)[Window], Floats (&to)[kTile]) {
  Floats even1 = g[0] + g[2], odd1 = g[1];
  Floats even2 = times(4, g[2], g[0]), odd2 = 2.0f * g[1];
  if constexpr (Window == 5) {
    even1 += g[4], odd1 += g[3];
    even2 = times(16, g[4], even2), odd2 = times(8, g[3], odd2);
  }
  to[0] = kScale0 * g[0];
  to[1] = kScale1 * (even1 + odd1);
  to[2] = kScale1 * (even1 - odd1);
  to[3] = kScale2 * (even2 + odd2);
  to[4] = kScale2 * (even2 - odd2);
  to[5] = g[Window - 1];
}

// G^T u, the reverse.
template <int Window>
DTF_INLINE void transformFilterGradient(const Floats (&u)[kTile], Floats (&to)[Window]) {
  const Floats even1 = kScale1 * (u[1] + u[2]), odd1 = kScale1 * (u[1] - u[2]);
  const Floats even2 = kScale2 * (u[3] + u[4]), odd2 = kScale2 * (u[3] - u[4]);
  to[0] = times(kScale0, u[0], even1 + even2);
  to[1] = times(2, odd2, odd1);
  to[2] = times(4, even2, even1);
  if constexpr (Window == 5) {
    to[3] = times(8, odd2, odd1);
    to[4] = times(16, even2, even1) + u[5];
  } else {
    to[2] += u[5];
  }
}

// Transforms in both directions: `from(i, j)` returns From x From vectors, `to(i, j, v)` receives
// To x To, or the rows [Row, Row + Rows) of these; `f` is one of the transforms above.
template <int From, int To, int Row = 0, int Rows = To, class Get, class F, class Put>
DTF_INLINE void transformSquare(const Get& from, const F& f, const Put& to) {
  Floats half[Rows][From];
#pragma GCC unroll 6
  for (int j = 0; j < From; ++j) {
    Floats column[From], made[To];
#pragma GCC unroll 6
    for (int i = 0; i < From; ++i) column[i] = from(i, j);
    f(column, made);
#pragma GCC unroll 6
    for (int i = 0; i < Rows; ++i) half[i][j] = made[Row + i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < Rows; ++i) {
    Floats made[To];
    f(half[i], made);
#pragma GCC unroll 6
    for (int j = 0; j < To; ++j) to(Row + i, j, made[j]);
  }
}

// Distances of planes, in floats.
struct Planes {
  explicit Planes(const WinogradTask& t)
      : filter_plane(t.channels * t.out_channels + kPlanePadding),
        image_plane(t.block_tiles * t.channels + kPlanePadding),
        out_plane(t.block_tiles * t.out_channels + kPlanePadding),
        patch_floats(kPlanes * t.channels) {}

  int64_t filter_plane, image_plane, out_plane;
  int64_t patch_floats;
};

// The parts of the workspace, with a thread's patch of the image and its workspace for products.
struct Workspace : Planes {
  explicit Workspace(const WinogradTask& t)
      : Planes(t),
        filter(t.filter_planes),
        image(t.tile_planes),
        out(behind(t.tile_planes, kPlanes * image_plane)),
        patch(t.scratch),
        product(behind(t.scratch, patch_floats)) {}

  // Parts that a task doesn't use are absent.
  static float* behind(float* begin, int64_t floats) {
    return begin == nullptr ? nullptr : begin + floats;
  }

  float *filter, *image, *out;
  float* patch;  // one tile of the image
  float* product;
};

// The position of a tile.
struct ImageTile {
  int64_t n, row, column;       // first element of the image, perhaps outside of it
  int64_t out_row, out_column;  // first element of the output
};

DTF_INLINE ImageTile tileAt(const WinogradTask& t, int64_t number) {
  const int64_t across = t.tilesAcross(), down = t.tilesDown();
  ImageTile tile = {};
  tile.n = number / (across * down);
  tile.out_row = number / across % down * t.tileOutputs();
  tile.out_column = number % across * t.tileOutputs();
  tile.row = tile.out_row - t.top;
  tile.column = tile.out_column - t.left;
  return tile;
}

// Returns whether all of [first, first + n) is within [0, length).
DTF_INLINE bool inside(int64_t first, int64_t n, int64_t length) {
  return first >= 0 && first + n <= length;
}

// The elements of a square of an image: (i, j) is at from + (i * line + j) * channels.
struct Square {
  const float* from;
  int64_t line;  // in elements
};

// Returns a copy of a tile that is partly outside of the image, with zeros around it.
DTF_INLINE Square framed(const WinogradTask& t, const ImageTile& at, const float* x, float* patch) {
  const int64_t floats = kPlanes * t.channels;
  __builtin_memset(patch, 0, static_cast<size_t>(floats) * sizeof(float));
  const int64_t row0 = at.row < 0 ? -at.row : 0, row1 = least(kTile, t.height - at.row);
  const int64_t column0 = at.column < 0 ? -at.column : 0;
  const int64_t columns = least(kTile, t.width - at.column) - column0;
  for (int64_t i = row0; i < row1 && columns > 0; ++i) {
    __builtin_memcpy(patch + (i * kTile + column0) * t.channels,
                     x + (i * t.width + column0) * t.channels,
                     static_cast<size_t>(columns * t.channels) * sizeof(float));
  }
  return {patch, kTile};
}

template <int Row = 0, int Rows = kTile>
void transformImages(const WinogradTask& t, const Workspace& w, const WinogradTiles& some) {
  const auto transform = [](const Floats(&d)[kTile], Floats(&to)[kTile]) { transformImage(d, to); };
  for (int64_t number = 0; number < some.tiles; ++number) {
    const ImageTile at = tileAt(t, some.first + number);
    const float* const x = t.x + ((at.n * t.height + at.row) * t.width + at.column) * t.channels;
    float* const planes = w.image + (some.row + number) * t.channels;
    const bool whole = inside(at.row, kTile, t.height) && inside(at.column, kTile, t.width);
    const Square square = whole ? Square{x, t.width} : framed(t, at, x, w.patch);
    for (int64_t c = 0; c < t.channels; c += kLanes) {
      transformSquare<kTile, kTile, Row, Rows>(
          [&](int i, int j) { return load(square.from + (i * square.line + j) * t.channels + c); },
          transform,
          [&](int i, int j, Floats v) { store(planes + (i * kTile + j) * w.image_plane + c, v); });
    }
  }
}

// The part of a tile's outputs inside the image.
struct OutputTile {
  int64_t at;  // offset of the first, in floats
  int64_t rows, columns;
};
template <int Outputs>
DTF_INLINE OutputTile outputTile(const WinogradTask& t, int64_t number) {
  const ImageTile tile = tileAt(t, number);
  return {((tile.n * t.out_height + tile.out_row) * t.out_width + tile.out_column) * t.out_channels,
          least(Outputs, t.out_height - tile.out_row),
          least(Outputs, t.out_width - tile.out_column)};
}

template <int Outputs>
void makeOutputs(const WinogradTask& t, const Workspace& w, int64_t first, int64_t tiles,
                 float* y) {
  const auto transform = [](const Floats(&m)[kTile], auto& to) { transformOutput<Outputs>(m, to); };
  for (int64_t number = 0; number < tiles; ++number) {
    const OutputTile tile = outputTile<Outputs>(t, first + number);
    const float* const planes = w.out + number * t.out_channels;
    const bool whole = tile.rows == Outputs && tile.columns == Outputs;
    for (int64_t k = 0; k < t.out_channels; k += kLanes) {
      float* const to = y + tile.at + k;
      const auto get = [&](int i, int j) {
        return load(planes + (i * kTile + j) * w.out_plane + k);
      };
      const auto put = [&](int i, int j, Floats v) {
        store(to + (i * t.out_width + j) * t.out_channels, v);
      };
      if (whole) {
        transformSquare<kTile, Outputs>(get, transform, put);
      } else {
        transformSquare<kTile, Outputs>(get, transform, [&](int i, int j, Floats v) {
          if (i < tile.rows && j < tile.columns) put(i, j, v);
        });
      }
    }
  }
}

template <int Outputs, int Row, int Rows>
void transformGradients(const WinogradTask& t, const Workspace& w, const WinogradTiles& some,
                        const float* dy) {
  const auto transform = [](const Floats(&y)[Outputs], Floats(&to)[kTile]) {
    transformGradient<Outputs>(y, to);
  };
  for (int64_t number = 0; number < some.tiles; ++number) {
    const OutputTile tile = outputTile<Outputs>(t, some.first + number);
    float* const planes = w.out + (some.row + number) * t.out_channels;
    const bool whole = tile.rows == Outputs && tile.columns == Outputs;
    for (int64_t k = 0; k < t.out_channels; k += kLanes) {
      const float* const from = dy + tile.at + k;
      const auto get = [&](int i, int j) {
        return load(from + (i * t.out_width + j) * t.out_channels);
      };
      const auto put = [&](int i, int j, Floats v) {
        store(planes + (i * kTile + j) * w.out_plane + k, v);
      };
      if (whole) {
        transformSquare<Outputs, kTile, Row, Rows>(get, transform, put);
      } else {
        const auto part = [&](int i, int j) {
          return i < tile.rows && j < tile.columns ? get(i, j) : Floats{};
        };
        transformSquare<Outputs, kTile, Row, Rows>(part, transform, put);
      }
    }
  }
}

template <int Window>
void transformFilters(const WinogradTask& t, const Workspace& w, const float* filter, int64_t begin,
                      int64_t end) {
  const auto transform = [](const Floats(&g)[Window], Floats(&to)[kTile]) {
    transformFilter<Window>(g, to);
  };
  const int64_t taps = t.channels * t.out_channels;
  for (int64_t at = begin; at < end; at += kLanes) {
    const auto get = [&](int i, int j) { return load(filter + (i * Window + j) * taps + at); };
    transformSquare<Window, kTile>(get, transform, [&](int i, int j, Floats v) {
      store(w.filter + (i * kTile + j) * w.filter_plane + at, v);
    });
  }
}

// The filter of the reverse convolution has our columns as rows: processes squares of channels,
// transposed on the way to their plane.
template <int Window>
void transformReversedFilters(const WinogradTask& t, const Workspace& w, const float* filter,
                              int64_t begin, int64_t end) {
  const auto transform = [](const Floats(&g)[Window], Floats(&to)[kTile]) {
    transformFilter<Window>(g, to);
  };
  const int64_t taps = t.channels * t.out_channels;
  alignas(64) float squares[kPlanes][kLanes * kLanes];
  for (int64_t out = begin; out < end; out += kLanes) {
    for (int64_t c = 0; c < t.channels; c += kLanes) {
      for (int64_t row = 0; row < kLanes; ++row) {
        const float* const from = filter + (out + row) * t.channels + c;
        const auto get = [&](int i, int j) {
          return load(from + ((Window - 1 - i) * Window + Window - 1 - j) * taps);
        };
        transformSquare<Window, kTile>(get, transform, [&](int i, int j, Floats v) {
          store(squares[i * kTile + j] + row * kLanes, v);
        });
      }
      for (int64_t plane = 0; plane < kPlanes; ++plane) {
        Floats square[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) square[i] = load(squares[plane] + i * kLanes);
        transpose(square);
        float* const to = w.filter + plane * w.filter_plane + c * t.out_channels + out;
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) store(to + i * t.out_channels, square[i]);
      }
    }
  }
}

template <int Window>
void makeFilterGradient(const WinogradTask& t, const Workspace& w, int64_t begin, int64_t end,
                        float* dfilter) {
  const auto transform = [](const Floats(&u)[kTile], auto& to) {
    transformFilterGradient<Window>(u, to);
  };
  const int64_t taps = t.channels * t.out_channels;
  for (int64_t at = begin; at < end; at += kLanes) {
    const auto get = [&](int i, int j) {
      return load(w.filter + (i * kTile + j) * w.filter_plane + at);
    };
    transformSquare<kTile, Window>(get, transform, [&](int i, int j, Floats v) {
      store(dfilter + (i * Window + j) * taps + at, v);
    });
  }
}

// out = image * filter, for each plane.
MatrixProduct planeProduct(const WinogradTask& t, int64_t tiles) {
  MatrixProduct p;
  p.m = tiles, p.k = t.channels, p.n = t.out_channels;
  return p;
}

// filter += image^T * out, for each plane.
MatrixProduct gradientProduct(const WinogradTask& t, int64_t tiles) {
  MatrixProduct p;
  p.m = t.channels, p.k = tiles, p.n = t.out_channels;
  p.transpose_a = true;
  return p;
}

// For the rows [Row, Row + Rows) of planes.
template <int Row, int Rows>
void transformTiles(const WinogradTask& t, const WinogradTiles& tiles, const float* dy) {
  const Workspace w(t);
  transformImages<Row, Rows>(t, w, tiles);
  if (t.window == 3) return transformGradients<4, Row, Rows>(t, w, tiles, dy);
  transformGradients<2, Row, Rows>(t, w, tiles, dy);
}

}  // namespace

WinogradSizes winogradSizes(const WinogradTask& t) {
  const Planes planes(t);
  const size_t forward = matrixProductWorkspaceBytes(planeProduct(t, t.block_tiles));
  const size_t gradient = matrixProductWorkspaceBytes(gradientProduct(t, t.block_tiles));
  const size_t product = (forward > gradient ? forward : gradient) / sizeof(float);
  return {kPlanes * planes.filter_plane, kPlanes * (planes.image_plane + planes.out_plane),
          parts(planes.patch_floats + static_cast<int64_t>(product), 16) * 16};
}

void winogradTransformFilter(const WinogradTask& t, const float* filter, int64_t begin,
                             int64_t end) {
  const Workspace w(t);
  if (t.window == 3) {
    (t.reversed ? transformReversedFilters<3> : transformFilters<3>)(t, w, filter, begin, end);
  } else {
    (t.reversed ? transformReversedFilters<5> : transformFilters<5>)(t, w, filter, begin, end);
  }
}

void winogradForward(const WinogradTask& t, int64_t first, int64_t tiles, float* y) {
  const Workspace w(t);
  for (int64_t done = 0; done < tiles; done += t.block_tiles) {
    const WinogradTiles block = {first + done, least(t.block_tiles, tiles - done), 0};
    transformImages(t, w, block);
    MatrixProduct p = planeProduct(t, block.tiles);
    p.workspace = w.product;
    for (int64_t plane = 0; plane < kPlanes; ++plane) {
      p.a = w.image + plane * w.image_plane;
      p.b = w.filter + plane * w.filter_plane;
      p.c = w.out + plane * w.out_plane;
      matrixProduct(p);
    }
    (t.window == 3 ? makeOutputs<4> : makeOutputs<2>)(t, w, block.first, block.tiles, y);
  }
}

void winogradTransformTiles(const WinogradTask& t, const WinogradTiles& tiles, const float* dy) {
  constexpr int kHalf = kTile / 2;
  if (tiles.planes == WinogradHalf::kBoth) return transformTiles<0, kTile>(t, tiles, dy);
  if (tiles.planes == WinogradHalf::kFirst) return transformTiles<0, kHalf>(t, tiles, dy);
  transformTiles<kHalf, kHalf>(t, tiles, dy);
}

void winogradMultiplyTiles(const WinogradTask& t, int64_t tiles, bool accumulate, int64_t plane,
                           int64_t end) {
  const Workspace w(t);
  MatrixProduct p = gradientProduct(t, tiles);
  p.workspace = w.product;
  p.accumulate = accumulate;
  for (; plane < end; ++plane) {
    p.a = w.image + plane * w.image_plane;
    p.b = w.out + plane * w.out_plane;
    p.c = w.filter + plane * w.filter_plane;
    matrixProduct(p);
  }
}

void winogradFilterGradient(const WinogradTask& t, int64_t begin, int64_t end, float* dfilter) {
  const Workspace w(t);
  (t.window == 3 ? makeFilterGradient<3> : makeFilterGradient<5>)(t, w, begin, end, dfilter);
}

}  // namespace dtf::runtime::DTF_ISA
